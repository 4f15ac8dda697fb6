// Prints arbitrages as they appear and end, with stakes: cargo run -p arbitrage-watch
//
// The server is LINESMAN_URL, the key is in LINESMAN_KEY. SPORTS has sport keys separated by commas (default: all),
// MIN_PROFIT the minimum profit (0.01). The client asks the server only if its answer may have changed, so a round is
// cheap; the program ends after ROUNDS of them, or when it is interrupted.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use linesman_client::types::Arbitrage;
use linesman_client::{Client, Error};

const PAUSE: Duration = Duration::from_secs(2);

/// The name of an arbitrage, which stays the same while its prices change.
fn name(arbitrage: &Arbitrage) -> String {
    let point = arbitrage.point.map(|point| format!(" {point}")).unwrap_or_default();
    format!("{} {}{point}", arbitrage.event_id, arbitrage.market)
}

fn show(arbitrage: &Arbitrage) {
    let warning = if arbitrage.suspect { ", too good to trust" } else { "" };
    let (profit, age) = (arbitrage.profit * 100.0, arbitrage.oldest_age_s);
    println!("+ {}: {profit:.2} %, prices up to {age} s old{warning}", name(arbitrage));
    for leg in &arbitrage.legs {
        println!("    {:.2} on {} at {} ({})", leg.stake, leg.name, leg.price, leg.bookmaker);
    }
}

async fn read(client: &Client, sport: &str) -> Result<Vec<Arbitrage>, Error> {
    let least = env::var("MIN_PROFIT").unwrap_or_else(|_| "0.01".to_owned());
    let answer = client.arbitrage(sport).min_profit(least).limit(500).await?;
    Ok(answer.data.arbitrages)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::new()?;
    let sports: Vec<String> = match env::var("SPORTS") {
        Ok(sports) => sports.split(',').map(str::to_owned).collect(),
        Err(_) => client.sports().all().await?.into_iter().map(|sport| sport.key).collect(),
    };
    let mut rounds = env::var("ROUNDS").ok().and_then(|rounds| rounds.parse::<u64>().ok());
    let mut known: BTreeMap<String, Arbitrage> = BTreeMap::new();
    loop {
        let mut found = BTreeMap::new();
        for sport in &sports {
            for arbitrage in read(&client, sport).await? {
                found.insert(name(&arbitrage), arbitrage);
            }
        }
        for (name, arbitrage) in &found {
            // An arbitrage whose prices were only confirmed is unchanged.
            let prices = |one: &Arbitrage| -> Vec<String> {
                one.legs.iter().map(|leg| format!("{} {}", leg.bookmaker, leg.price)).collect()
            };
            if known.get(name).map(prices) != Some(prices(arbitrage)) {
                show(arbitrage);
            }
        }
        for name in known.keys().filter(|name| !found.contains_key(*name)) {
            println!("- {name}");
        }
        known = found;
        rounds = rounds.map(|rounds| rounds.saturating_sub(1));
        if rounds == Some(0) {
            println!("{} arbitrages in {} sports", known.len(), sports.len());
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
