#!/usr/bin/env python3
"""Pushes an event and its odds to Linesman: python3 push_feed.py http://localhost:8080

Needs the client: pip install linesman-client. Reads the feed's token from FEED_TOKEN, or whole messages from a file:
push_feed.py URL messages.ndjson
"""
import datetime, json, os, sys, time
from linesman import Feed, LinesmanError

TEMPORARY = (None, 409, 500, 503)    # no connection, paused, failed, overloaded: nothing is lost, send it again


def messages():
    """The messages of your source: an event, and the odds of one bookmaker."""
    start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    yield {
        "type": "event", "ref": "demo-1", "sport": "mma", "competition": "Invitational 7",
        "commence_time": start.strftime("%Y-%m-%dT%H:00:00Z"), "home": "Ana Testa", "away": "Bea Probe",
    }
    yield {
        "type": "odds", "ref": "demo-1", "bookmaker": "fanduel", "market": "moneyline", "format": "american",
        "outcomes": [{"name": "Ana Testa", "price": 140}, {"name": "Bea Probe", "price": -165}],
    }


def push(feed, everything):
    """Sends messages until the service has confirmed them, and returns its receipt."""
    while True:
        try:
            return feed.push(everything)
        except LinesmanError as error:
            if error.status not in TEMPORARY:
                raise SystemExit(str(error))
            print(f"retrying: {error}", file=sys.stderr)
            time.sleep(error.retry_after or 5)


def main():
    base, *files = sys.argv[1:] or ["http://localhost:8080"]
    token = os.environ.get("FEED_TOKEN") or sys.exit("set FEED_TOKEN: linesman feeds create NAME prints a token")
    if files:
        everything = [json.loads(line) for line in open(files[0], encoding="utf-8") if line.strip()]
    else:
        everything = list(messages())
    with Feed(base, token) as feed:
        receipt = push(feed, everything)
    for reject in receipt["rejected"]:
        print(reject["code"], reject["message"], everything[reject["line"] - 1], file=sys.stderr)
    print({name: count for name, count in receipt.items() if name != "rejected"})


if __name__ == "__main__":
    main()
