//! The crate `the-odds-api`, unmodified: only its base URL is replaced.

use the_odds_api::{Market, Region, TheOddsApiClient};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (address, key) = (args.next().ok_or("no address")?, args.next().ok_or("no key")?);
    let client = TheOddsApiClient::builder(key).base_url(address).build();

    let sports = client.get_sports().await?;
    assert!(sports.data.iter().any(|sport| sport.key == "mma_mixed_martial_arts"));
    assert_eq!(sports.usage.requests_last, Some(0));
    assert!(client.get_all_sports().await?.data.len() > sports.data.len());

    let nfl = "americanfootball_nfl";
    let odds = client
        .get_odds(nfl)
        .regions(&[Region::Us, Region::Uk])
        .markets(&[Market::H2h, Market::Totals])
        .send()
        .await?;
    assert_eq!(odds.usage.requests_last, Some(4));
    // Not an event in play, whose markets may close: the last to begin among those that most bookmakers price.
    let most = odds.data.iter().map(|event| event.bookmakers.len()).max().ok_or("no games")?;
    assert!(most > 0, "no prices");
    let priced = odds.data.iter().filter(|event| event.bookmakers.len() == most);
    let event = priced.max_by_key(|event| event.commence_time).ok_or("no prices")?;
    assert!(!client.get_upcoming_odds().regions(&[Region::Us]).send().await?.data.is_empty());
    assert!(!client.get_events(nfl).send().await?.data.is_empty());
    let scores = client.get_scores(nfl).days_from(3).send().await?;
    assert!(scores.data.iter().any(|score| score.completed));
    let one = client.get_event_odds(nfl, &event.id).regions(&[Region::Us]).send().await?;
    assert_eq!(one.data.id, event.id);
    let markets = client.get_event_markets(nfl, &event.id).regions(&[Region::Us]).send().await?;
    assert!(!markets.data.bookmakers.is_empty());
    assert!(client.get_participants(nfl).await?.data.len() >= 32);
    Ok(())
}
