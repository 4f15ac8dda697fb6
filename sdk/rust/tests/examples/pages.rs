use linesman_client::Client;
use linesman_client::types::Method;

#[tokio::main]
async fn main() -> linesman_client::Result<()> {
    let client = Client::new()?;
    let lines = client.fair("golf").market("outright").method(Method::Shin).limit(2).max_items(6);
    let mut pages = lines.pages();
    while let Some(page) = pages.next().await {
        let page = page?;
        println!("{} lines of {}", page.data.lines.len(), page.data.generated_at);
        println!("{:?} requests left", page.meta.requests_remaining);
    }
    let events = client.events("tennis").status("scheduled").max_items(50).all().await?;
    println!("{} events", events.len());
    Ok(())
}
