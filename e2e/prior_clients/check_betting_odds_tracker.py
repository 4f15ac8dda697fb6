"""The package betting-odds-tracker, unmodified: only its base URL is replaced."""

import sys

from betting_odds_tracker import odds_api

odds_api.ODDS_API_BASE = sys.argv[1] + "/v4"
client = odds_api.OddsAPI(sys.argv[2])

assert any(sport["key"] == "mma_mixed_martial_arts" for sport in client.get_available_sports())
odds = client.get_odds("americanfootball_nfl", use_cache=False)
priced = [game for game in odds["games"] if game["bookmakers"]]
assert priced and {"h2h", "spreads", "totals"} >= set(priced[0]["bookmakers"][0]["markets"])
status = client.get_rate_limit_status()
assert status["requests_used"] >= 3 and status["requests_remaining"] > 0, status
assert client.get_scores("americanfootball_nfl", days_from=3)["count"] > 0

try:
    odds_api.OddsAPI("sk_test_wrong").get_odds("mma_mixed_martial_arts", use_cache=False)
    raise AssertionError("the key is wrong")
except ValueError as error:
    assert "Invalid Odds API key" in str(error)
