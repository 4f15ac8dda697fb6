use linesman_client::Feed;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let feed = Feed::new(std::env::var("LINESMAN_URL")?, std::env::var("FEED_TOKEN")?)?;
    let messages = [json!({"type": "heartbeat", "bookmaker": "fanduel", "sport": "mma"})];
    let receipt = feed.push(messages).await?;
    println!("{} stored", receipt.accepted + receipt.unchanged);
    for line in &receipt.rejected {
        println!("line {}: {} {}", line.line, line.code, line.message);
    }
    Ok(())
}
