"""The package theoddsapi, unmodified: only its host is replaced."""

import sys
from datetime import datetime, timedelta, timezone

import requests
from theoddsapi import TheOddsAPI

TheOddsAPI.HOST, key = sys.argv[1:]
client = TheOddsAPI(key)

keys = {sport["key"] for sport in client.get_sports()}
assert "americanfootball_nfl" in keys, keys
assert keys < {sport["key"] for sport in client.get_sports(all="true")}
remaining, used = client.get_requests_remaining(), client.get_requests_used()

games = client.get_odds(sport="americanfootball_nfl", regions="us", markets="h2h,spreads", oddsFormat="american")
prices = [
    outcome["price"]
    for game in games
    for bookmaker in game["bookmakers"]
    for market in bookmaker["markets"]
    for outcome in market["outcomes"]
]
assert prices and all(isinstance(price, int) for price in prices)
assert client.get_requests_used() == used + 2
assert client.get_requests_remaining() == remaining - 2

scores = client.get_scores(sport="americanfootball_nfl", daysFrom=3)
assert any(game["completed"] for game in scores)

# The game whose winner most bookmakers price, not one in play: its market may close or be decided.
soon = (datetime.now(timezone.utc) + timedelta(minutes=15)).strftime("%Y-%m-%dT%H:%M:%SZ")
event = max(
    (game for game in games if game["commence_time"] > soon),
    key=lambda game: sum(market["key"] == "h2h" for book in game["bookmakers"] for market in book["markets"]),
)
one = client.get_event_odds(sport="americanfootball_nfl", eventId=event["id"], regions="us", markets="h2h")
assert one["id"] == event["id"] and one["bookmakers"], one
assert all("last_update" not in bookmaker for bookmaker in one["bookmakers"])

an_hour_ago = (datetime.now(timezone.utc) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
past = client.get_historical_odds(sport="americanfootball_nfl", regions="us", date=an_hour_ago)
assert past["previous_timestamp"] < past["timestamp"] <= an_hour_ago < past["next_timestamp"], past
assert any(game["bookmakers"] for game in past["data"])
try:
    client.get_historical_odds(sport="americanfootball_nfl", regions="us", date="2020-01-01T00:00:00Z")
    raise AssertionError("history does not reach back so far")
except requests.exceptions.HTTPError as error:
    assert error.response.json()["error_code"] == "INVALID_HISTORICAL_TIMESTAMP"
