#!/usr/bin/env python3
"""Pushes an event and its odds to Linesman: python3 push_feed.py http://localhost:8080

Reads the feed's token from FEED_TOKEN, or whole messages from a file: push_feed.py URL messages.ndjson
"""
import datetime, gzip, itertools, json, os, random, sys, time, urllib.error, urllib.request

LINES = 1000      # in one push: a lost connection costs at most this much again
TIMEOUT_S = 30    # more than the 15 s after which the service gives up


def messages():
    """What your source offers: an event, and the odds of one bookmaker."""
    start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    yield {
        "type": "event", "ref": "demo-1", "sport": "mma", "competition": "Invitational 7",
        "commence_time": start.strftime("%Y-%m-%dT%H:00:00Z"), "home": "Ana Testa", "away": "Bea Probe",
    }
    yield {
        "type": "odds", "ref": "demo-1", "bookmaker": "fanduel", "market": "moneyline", "format": "american",
        "outcomes": [{"name": "Ana Testa", "price": 140}, {"name": "Bea Probe", "price": -165}],
    }


def push(base, token, lines):
    """Sends lines until the service has confirmed them, and returns its receipt."""
    request = urllib.request.Request(
        base + "/ingest/v1/messages",
        data=gzip.compress("\n".join(lines).encode()),
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/x-ndjson",
            "Content-Encoding": "gzip",
        },
    )
    pause = 1.0
    while True:
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in (409, 500, 503):
                raise SystemExit(f"{error.code}: {error.read().decode()}")
            pause = max(pause, float(error.headers.get("Retry-After", 1)))
        except OSError as error:    # refused, reset, timed out: nothing is known, so send it again
            print(f"retrying: {error}", file=sys.stderr)
        time.sleep(pause * random.uniform(1.0, 1.5))
        pause = min(2 * pause, 60.0)


def main():
    base, *files = sys.argv[1:] or ["http://localhost:8080"]
    token = os.environ.get("FEED_TOKEN") or sys.exit("set FEED_TOKEN: linesman feeds create NAME prints a token")
    if files:
        lines = (line.strip() for line in open(files[0], encoding="utf-8") if line.strip())
    else:
        lines = (json.dumps(message) for message in messages())
    while part := list(itertools.islice(lines, LINES)):
        receipt = push(base.rstrip("/"), token, part)
        for reject in receipt["rejected"]:
            print(reject["code"], reject["message"], part[reject["line"] - 1], file=sys.stderr)
        print({name: count for name, count in receipt.items() if name != "rejected"})


if __name__ == "__main__":
    main()
