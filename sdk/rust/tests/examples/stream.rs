use linesman_client::Client;

#[tokio::main]
async fn main() -> linesman_client::Result<()> {
    let client = Client::new()?;
    let mut changes = client.stream().sports(["mma"]).bookmaker("fanduel").open();
    while let Some(update) = changes.next().await {
        let update = update?;
        if let Some(reason) = &update.reset {
            println!("begun anew: {reason}");
        }
        println!("{}: {} records", update.cut.at, changes.state().odds.len());
        if !changes.state().odds.is_empty() {
            break; // `changes.cursor()` goes on from here with `since`.
        }
    }
    Ok(())
}
