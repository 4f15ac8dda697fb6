use linesman_client::Feed;
use linesman_client::types::FeedHeartbeat;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let feed = Feed::new(std::env::var("LINESMAN_URL")?, std::env::var("FEED_TOKEN")?)?;
    let messages = [FeedHeartbeat::new().bookmaker("fanduel").sport("mma")];
    let receipt = feed.push(messages).await?;
    println!("{} stored", receipt.accepted + receipt.unchanged);
    for line in &receipt.rejected {
        println!("line {}: {} {}", line.line, line.code, line.message);
    }
    Ok(())
}
