use std::collections::BTreeMap;

use linesman_client::Client;
use linesman_client::types::OddsRecord;

#[tokio::main]
async fn main() -> linesman_client::Result<()> {
    let client = Client::new()?;
    let odds = client.odds("mma").bookmaker("fanduel").market("moneyline").limit(500);
    let (mut known, mut cursor): (BTreeMap<String, OddsRecord>, _) = (BTreeMap::new(), None);
    let mut pages = odds.clone().pages();
    while let Some(page) = pages.next().await {
        let page = page?;
        cursor = cursor.or(page.meta.cursor);
        known.extend(page.data.into_iter().map(|record| (record.id.clone(), record)));
    }
    let delta = odds.since(cursor.unwrap_or_default()).await?.data;
    known.extend(delta.upserts.into_iter().map(|record| (record.id.clone(), record)));
    for gone in &delta.removed {
        known.remove(&gone.id);
    }
    println!("{} records; next time since {}", known.len(), delta.cursor);
    Ok(())
}
