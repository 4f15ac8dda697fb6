"""A typical client that uses the default output of openapi-python-client."""

import sys

from linesman_client import AuthenticatedClient
from linesman_client.api.feeds import push_messages
from linesman_client.api.odds_and_events import get_odds, list_events
from linesman_client.models import (
    Error,
    FeedHeartbeat,
    GetOddsSportKey,
    ListEventsSportKey,
    ListEventsStatus,
)

base_url, key, token = sys.argv[1:]
client = AuthenticatedClient(base_url, key, prefix="", auth_header_name="X-API-Key")

events = list_events.sync(
    ListEventsSportKey.MMA, client=client, limit=2, status=ListEventsStatus.SCHEDULED
)
assert isinstance(events, list) and len(events) == 2, events
ids = {event.id for event in events}

odds = get_odds.sync(
    GetOddsSportKey.MMA, client=client, regions="us,uk", event_ids=",".join(sorted(ids))
)
assert isinstance(odds, list) and odds, odds
assert {record.event_id for record in odds} <= ids
assert all(type(outcome.price) in (int, float) for record in odds for outcome in record.outcomes)

refused = get_odds.sync(GetOddsSportKey.MMA, client=client, limit=501)
assert isinstance(refused, Error) and refused.error.param == "limit", refused

feed = AuthenticatedClient(base_url, token)
receipt = push_messages.sync(
    client=feed, body=FeedHeartbeat(type_="heartbeat", bookmaker="fanduel", sport="mma")
)
assert receipt.rejected_total == 0, receipt
