use linesman_client::{Client, ErrorCode};

#[tokio::main]
async fn main() -> linesman_client::Result<()> {
    let client = Client::new()?;
    match client.event("chess", "evt_1").await {
        Ok(event) => println!("{:?}", event.data.home_team),
        Err(error) if *error.code() == ErrorCode::SportNotFound => println!("{}", error.message()),
        Err(error) => println!("{error}, again in {:?} s", error.retry_after()),
    }
    Ok(())
}
