use linesman_client::Client;

#[tokio::main]
async fn main() -> linesman_client::Result<()> {
    let client = Client::new()?;
    let mut odds =
        client.odds("mma").market("moneyline").regions(["us", "uk"]).max_items(20).items();
    while let Some(record) = odds.next().await {
        let record = record?;
        for outcome in &record.outcomes {
            println!("{} {} {}", record.bookmaker, outcome.name, outcome.price);
        }
    }
    Ok(())
}
