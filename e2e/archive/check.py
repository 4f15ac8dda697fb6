"""The programs of docs/history.md read the archive of a running service and find what the API shows.

Arguments: the program, its data folder, its address, a key and a feed's token for live data, docs/history.md.
"""

import json
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path

program, data, address, key, token, guide = sys.argv[1:]
ODDS = "/v1/sports/mma/odds?odds_format=decimal&limit=500&regions=us,uk,eu,au"
SOON = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
WAIT_MAX_S = 60


def get(path):
    request = urllib.request.Request(address + path, headers={"X-API-Key": key})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer), answer.headers["x-published-at"]


def push(*messages):
    body = "\n".join(json.dumps(message) for message in messages).encode()
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(address + "/ingest/v1/messages", body, headers)
    with urllib.request.urlopen(request) as answer:
        receipt = json.load(answer)
    assert receipt["rejected_total"] == 0, receipt


def listed(ref, home, away):
    names = {"home": home, "away": away, "competition": "Archive Cup", "commence_time": SOON}
    return {"type": "event", "ref": ref, "sport": "mma", **names}


def odds(ref, bookmaker, *outcomes):
    outcomes = [{"name": name, "price": price} for name, price in outcomes]
    head = {"type": "odds", "ref": ref, "bookmaker": bookmaker, "market": "moneyline"}
    return {**head, "format": "american", "outcomes": outcomes}


def shown(records):
    """What a program of the guide returns, of an answer."""
    return sorted(
        (record["id"], outcome["name"], outcome["price"], outcome["point"])
        for record in records
        for outcome in record["outcomes"]
    )


def published(*messages):
    """Pushes, and waits for the publication that shows it; the time and the records."""
    before, _ = get(ODDS)
    push(*messages)
    for _ in range(WAIT_MAX_S * 10):
        records, at = get(ODDS)
        if shown(records) != shown(before):
            return at, shown(records)
        time.sleep(0.1)
    raise AssertionError(f"not published: {messages}")


def programs():
    """The programs of the guide that read prices of a time, by their first line."""
    blocks = Path(guide).read_text().split("```python\n")[1:]
    codes = [block.split("```")[0] for block in blocks]
    found = {code.splitlines()[0]: code for code in codes if "def odds_at(" in code}
    assert len(found) == 3, list(found)
    return found


def check(seen):
    for name, code in programs().items():
        names = {}
        exec(code, names)
        for at, records in seen:
            instant = datetime.fromisoformat(at.replace("Z", "+00:00"))
            rows = names["odds_at"](f"{data}/archive/live", instant)
            point = lambda value: None if value is None or value != value else float(value)
            rows = sorted((row[0], row[1], row[2], point(row[3])) for row in rows)
            assert rows == records, f"{name} at {at}:\n{rows}\n{records}"
            asked, _ = get(f"{ODDS}&as_of={at}")
            assert shown(asked) == records


def linesman(*arguments):
    subprocess.run([program, "--data", data, *arguments], check=True, stdout=subprocess.DEVNULL)


bouts = [("a", "Ana Uno", "Bea Due"), ("b", "Cleo Tre", "Dora Quattro"), ("c", "Eva Cinque", "Fay Sei")]
first = [listed(*bout) for bout in bouts]
for ref, home, away in bouts:
    first += [odds(ref, book, (home, 140), (away, -165)) for book in ("fanduel", "pinnacle")]
seen = [published(*first)]
seen.append(published(odds("a", "fanduel", ("Ana Uno", 137), ("Bea Due", -155))))
seen.append(published(odds("a", "pinnacle"), odds("b", "fanduel", ("Cleo Tre", 3100), ("Dora Quattro", -9000))))
score = {"type": "score", "ref": "b", "status": "final", "home_score": 1, "away_score": 0}
seen.append(published(score))
seen.append(published({"type": "remove", "ref": "c"}))
seen.append(published(odds("a", "pinnacle", ("Ana Uno", 151), ("Bea Due", -170))))
linesman("history", "flush")
check(seen)
linesman("history", "compact")
linesman("history", "verify", "--sample", "5")
check(seen)
print(f"{len(seen)} publications, each read by {len(programs())} programs")
