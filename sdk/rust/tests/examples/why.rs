use linesman_client::Client;
use linesman_client::types::Market;

#[tokio::main]
async fn main() -> linesman_client::Result<()> {
    let client = Client::new()?;
    let events = client.events("boxing").status("scheduled").max_items(1).all().await?;
    for event in events {
        let answer = client.explain("boxing", &event.id).await?;
        for book in &answer.data.books {
            for cell in book.cells.iter().filter(|cell| cell.market == Market::Moneyline) {
                println!("{} {}: {}", book.bookmaker, cell.market, cell.state);
            }
        }
        println!("{} bookmakers without a source", answer.data.no_source.len());
    }
    Ok(())
}
