"""The programs of docs/history.md and the macros of `linesman history sql` read the archive of a running service and
agree with the API; H12 in SQL (closing.sql) agrees with the table `closing`.

Arguments: the program, its data folder, its address, a key and a feed's token for live data, docs/history.md, and
`lost` or `restored` for the steps before and after a backup of the log is restored.

Run again, after a restart with another catalogue, with an older log or without it, it compares the records seen earlier
and the current ones with the archive.
"""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path

program, data, address, key, token, guide, *step = sys.argv[1:]
ODDS = "/v1/sports/mma/odds?odds_format=decimal&limit=500&regions=us,uk,eu,au"
SOON = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
WAIT_MAX_S = 60
# Records seen by earlier runs.
SEEN = Path("seen.json")


def answered(path):
    """The body and headers of an answer. A service on a busy machine may answer 503 for a while."""
    request = urllib.request.Request(address + path, headers={"X-API-Key": key})
    until = time.monotonic() + WAIT_MAX_S
    while True:
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer), answer.headers
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > until:
                raise
        time.sleep(0.2)


def get(path):
    body, headers = answered(path)
    return body, headers["x-published-at"]


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
    """The rows that a program of the guide returns, from an answer."""
    return sorted(
        (record["id"], outcome["name"], outcome["price"], outcome["point"])
        for record in records
        for outcome in record["outcomes"]
    )


def published(*messages, change=None):
    """Pushes, or makes another change, and waits for the publication that shows it; returns its time and records."""
    before, _ = get(ODDS)
    change() if change else push(*messages)
    for _ in range(WAIT_MAX_S * 10):
        records, at = get(ODDS)
        if shown(records) != shown(before):
            return at, shown(records)
        time.sleep(0.1)
    raise AssertionError(f"not published: {messages}")


def merge(home, other_home):
    """Merges two events as an operator."""
    listed, _ = get("/v1/sports/mma/events?limit=500")
    ids = {event["home_team"]: event["id"] for event in listed}
    linesman("events", "merge", ids[home], ids[other_home])


def blocks(language):
    """The programs of the guide."""
    return [block.split("```")[0] for block in Path(guide).read_text().split(f"```{language}\n")[1:]]


def programs():
    """The programs that read prices of a time, by their first line."""
    found = {code.splitlines()[0]: code for code in blocks("python") if "def odds_at(" in code}
    assert len(found) == 3, list(found)
    return found


def check_study():
    """The study of closing lines agrees with the API, in both programs, and draws it; the queries run."""
    import duckdb

    closing = pages("/v1/sports/mma/odds/closing?market=moneyline&odds_format=decimal&limit=500&regions=us,uk,eu,au")
    decimal = lambda line: {outcome["name"]: outcome["price"] for outcome in line["outcomes"]}
    expected = []
    for record in closing:
        opens, closes = decimal(record["open"]), decimal(record["close"])
        expected += [(record["bookmaker"], name, opens[name], closes[name]) for name in closes if name in opens]
    names = {}
    studies = [code for code in blocks("python") if "def study(" in code]
    assert len(studies) == 2
    for code in studies:
        exec(code, names)
        found = names["study"](f"{data}/archive/live")
        prices = sorted((book, name, round(1 / opened, 4), round(1 / closed, 4)) for book, name, opened, closed in found)
        assert prices == sorted((*line[:2], round(line[2], 4), round(line[3], 4)) for line in expected), (prices, expected)
    (code,) = [code for code in blocks("python") if "def plot(" in code]
    exec(code, names)
    names["plot"](found, "closing.svg")
    assert Path("closing.svg").read_text().count("<circle") == len(found) > 0
    database = duckdb.connect()
    queries = blocks("sql")
    assert len(queries) == 2
    for query in queries:
        database.execute(query.replace("'archive/live", f"'{data}/archive/live"))
    assert database.fetchall(), "no line of the study by bookmaker"


def check_command_line(at):
    """The commands of the guide for DuckDB print what its example asks for, of the odds of a time."""
    text = Path(guide).read_text()
    commands = [line.strip() for line in text.splitlines() if "macros.sql" in line and line.startswith("    ")]
    assert [command.split()[0] for command in commands] == ["linesman", "duckdb"], commands
    (query,) = [block for block in text.split("\n\n") if block.startswith("    SELECT") and "odds_at(" in block]
    records, _ = get(f"{ODDS}&as_of={at}")
    record = next(record for record in records if record["market"] == "moneyline")
    query = query.replace("2026-11-14 23:38:00Z", at).replace("evt_8ZDGX3VOhGx", record["event_id"])
    assert at in query and record["event_id"] in query, query
    tools = f'linesman() {{ "{program}" --data "{data}" "$@"; }}; PATH="{Path(sys.executable).parent}:$PATH"'
    run = ["bash", "-ec", "\n".join([tools, *commands])]
    told = subprocess.run(run, input=query, check=True, stdout=subprocess.PIPE, text=True).stdout
    for record in (one for one in records if one["event_id"] == record["event_id"] and one["market"] == "moneyline"):
        for outcome in record["outcomes"]:
            assert outcome["name"] in told and str(outcome["price"]) in told, (outcome, told)


def check_walk():
    """The first program of the guide goes back by three publications."""
    (code,) = [code for code in blocks("python") if "x-previous-publication" in code]
    code = code.replace("http://localhost:8080", address)
    run = [sys.executable, "-c", code]
    told = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True, env={"LINESMAN_KEY": key}).stdout
    times = [line.split()[0] for line in told.splitlines()]
    assert len(times) == 3 and times == sorted(times, reverse=True), told


def sports(at):
    """The keys of the sports at a time."""
    return {sport["key"] for sport in get(f"/v1/sports?as_of={at}")[0]["sports"]}


def check(seen):
    for name, code in programs().items():
        names = {}
        exec(code, names)
        for at, records in seen:
            instant = datetime.fromisoformat(at.replace("Z", "+00:00"))
            rows = names["odds_at"](f"{data}/archive/live", instant)
            point = lambda value: None if value is None or value != value else float(value)
            rows = sorted((row[0], row[1], row[2], point(row[3])) for row in rows)
            asked, _ = get(f"{ODDS}&as_of={at}")
            assert shown(asked) == records
            for sport in sports(at) - {"mma"}:
                asked += get(f"{ODDS.replace('mma', sport)}&as_of={at}")[0]
            records = shown(asked)
            assert rows == records, f"{name} at {at}:\n{rows}\n{records}"


def linesman(*arguments):
    ran = subprocess.run([program, "--data", data, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout


def pages(path):
    """All records of a list."""
    records, target = [], path
    while target:
        found, headers = answered(target)
        records += found
        link = headers["Link"] or ""
        target = link.split(">")[0].lstrip("<") if 'rel="next"' in link else None
    return records


def instant_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def text_of(value):
    """An instant as the API writes it."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


def rows(database, query, *values):
    """The rows of a query. Its times have no zone, for which Python would need a package; the session uses UTC."""
    cursor = database.execute(query, list(values))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def of_odds(found):
    records = {}
    for row in found:
        head = ("id", "sport_key", "event_id", "bookmaker", "market")
        record = records.setdefault(row["id"], {name: row[name] for name in head})
        record["last_update"] = text_of(row["last_update"])
        point = None if row["point"] is None else float(row["point"])
        record.setdefault("outcomes", []).append({"name": row["name"], "price": row["decimal"], "point": point})
    return records


def of_scores(found):
    records = {row["event_id"]: {**row, "updated_at": text_of(row["updated_at"])} for row in found}
    for record in records.values():
        if record["winner"] is None:
            del record["winner"]
    return records


def of_events(found):
    records = {row["id"]: {**row, "commence_time": text_of(row["commence_time"])} for row in found}
    for record in records.values():
        if record["title"] is None:
            del record["title"]
    return records


def check_macros(times):
    """The macros return the same as the API, for every sport and every field."""
    import duckdb

    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute(linesman("history", "sql"))
    regions = "odds_format=decimal&regions=us,uk,eu,au"
    for at in times:
        odds, scores, events = ({}, {}, {})
        for sport in sports(at):
            base = f"/v1/sports/{sport}"
            for record in pages(f"{base}/odds?{regions}&limit=500&as_of={at}"):
                del record["format"]
                odds[record["id"]] = record
            scores.update({one["event_id"]: one for one in pages(f"{base}/scores?limit=500&as_of={at}")})
            events.update({one["id"]: one for one in pages(f"{base}/events?limit=500&as_of={at}")})
        found = of_odds(rows(database, "SELECT * REPLACE (last_update::TIMESTAMP AS last_update) FROM odds_at($1)", instant_of(at)))
        for record in [*found.values(), *odds.values()]:
            record["outcomes"].sort(key=lambda outcome: (outcome["name"], outcome["point"] or 0))
        same(at, "odds", found, odds)
        same(at, "scores", of_scores(rows(database, "SELECT * REPLACE (updated_at::TIMESTAMP AS updated_at) FROM scores_at($1)", instant_of(at))), scores)
        same(at, "events", of_events(rows(database, "SELECT * REPLACE (commence_time::TIMESTAMP AS commence_time) FROM events_at($1)", instant_of(at))), events)


def same(at, what, found, expected):
    assert found.keys() == expected.keys(), f"{what} at {at}: {found.keys() ^ expected.keys()}"
    for name, record in expected.items():
        assert found[name] == record, f"{what} at {at}:\n{found[name]}\n{record}"


def check_closing():
    """H12, written in SQL, finds the rows of the table `closing`."""
    import duckdb

    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute(linesman("history", "sql"))
    found = rows(database, (Path(__file__).parent / "closing.sql").read_text())
    held = rows(
        database,
        """SELECT rows.record_id, rows.name, rows.decimal, rows.start::TIMESTAMP AS start, rows.start_by, rows.active,
             rows.reason, rows.last_update::TIMESTAMP AS last_update, rows.published_at::TIMESTAMP AS published_at
           FROM read_parquet($1, hive_partitioning = false, filename = true) AS rows
           JOIN linesman_files AS files ON files.path = rows.filename
           QUALIFY rank() OVER (PARTITION BY rows.record_id ORDER BY files.lineage DESC, rows.seq DESC) = 1
             AND rows.start IS NOT NULL
           ORDER BY rows.record_id, rows.name""",
        [row["path"] for row in rows(database, "SELECT path FROM linesman_files WHERE of_table = 'closing'")],
    )
    assert held, "no closing line"
    for row in found:
        before = row.pop("last_before")
        if row["active"]:
            # With the freshness of that publication.
            query = "SELECT last_update::TIMESTAMP AS at FROM odds_at($1) WHERE id = $2"
            row["last_update"] = rows(database, query, before, row["record_id"])[0]["at"]
    for row in [*found, *held]:
        row["last_update"] = text_of(row["last_update"])
    assert found == held, "\n".join(f"{one}\n{other}" for one, other in zip(found, held) if one != other) or (found, held)
    assert {row["start_by"] for row in held} == {"live", "commence_time"}, held
    assert {row["active"] for row in held} == {True, False}, held
    return len(held)


def again():
    """Under another catalogue, and after the log was lost, the archive still agrees with the API."""
    held = [(at, [tuple(record) for record in records]) for at, records in json.loads(SEEN.read_text())]
    if step:
        held += {"lost": lost, "restored": restored}[step[0]]()
    records, at = get(ODDS)
    seen = [*held, (at, shown(records))]
    linesman("history", "flush")
    check(seen)
    check_macros([at for at, _ in seen])
    check_study()
    lines = check_closing()
    SEEN.write_text(json.dumps(seen))
    print(f"{len(seen)} publications, the last after a restart with another catalogue or log; {lines} closing prices")


def lost():
    """Changes after the backup: two events begin, one of them after many entries of the log."""
    price = lambda price: odds("a", "fanduel", ("Ana Uno", price), ("Bea Due", -150))
    seen = [published(*[price(100 + n % 2) for n in range(200)], price(126))]
    push(live("a"), live("f"))
    return [*seen, published(price(300))]


def restored():
    """One event begins again, with other prices and lower entry numbers; the other does not."""
    price = lambda price: odds("a", "fanduel", ("Ana Uno", price), ("Bea Due", -151))
    seen = [published(price(127))]
    push(live("a"))
    return [*seen, published(price(310))]


def live(ref):
    return {"type": "score", "ref": ref, "status": "live", "home_score": 0, "away_score": 0}


if SEEN.exists():
    again()
    sys.exit()

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
heartbeat = {"type": "heartbeat", "bookmaker": "fanduel", "sport": "mma"}
golf = {"type": "event", "ref": "g", "sport": "golf", "title": "Archive Open", "competition": "PGA Tour", "commence_time": SOON}
outright = {"type": "odds", "ref": "g", "bookmaker": "fanduel", "market": "outright", "format": "decimal"}
outright["outcomes"] = [{"name": "Gil One", "price": 5}, {"name": "Hal Two", "price": 7.5}]
board = [{"name": "Gil One", "rounds": [68, 70]}, {"name": "Hal Two", "rounds": [69]}]
leaders = {"type": "score", "ref": "g", "status": "live", "leaders": board}
# Confirmed by a read, by heartbeats of one sport and of all sports, and quoted again after them.
same_prices = odds("a", "pinnacle", ("Ana Uno", 151), ("Bea Due", -170))
push(heartbeat, golf, outright, same_prices)
seen.append(published(odds("a", "fanduel", ("Ana Uno", 133), ("Bea Due", -150))))
push({"type": "heartbeat", "bookmaker": "fanduel"}, leaders)
seen.append(published(odds("a", "pinnacle", ("Ana Uno", 152), ("Bea Due", -171))))
push(heartbeat)
# One event begins, one is listed with a start that has passed, and a third is suspended before it begins.
started = [listed("d", "Gia Sette", "Hana Otto"), odds("d", "fanduel", ("Gia Sette", 120), ("Hana Otto", -140))]
soon = (datetime.now(timezone.utc) + timedelta(seconds=20)).strftime("%Y-%m-%dT%H:%M:%SZ")
timed = [{**listed("e", "Ida Nove", "Jana Dieci"), "commence_time": soon}]
timed.append(odds("e", "pinnacle", ("Ida Nove", 105), ("Jana Dieci", -125)))
seen.append(published(*started, *timed))
seen.append(published(odds("d", "pinnacle", ("Gia Sette", 125), ("Hana Otto", -145))))
seen.append(published(odds("d", "pinnacle")))
push(live("d"))
while datetime.now(timezone.utc) < instant_of(soon) + timedelta(seconds=3):
    time.sleep(0.1)
seen.append(published(odds("a", "fanduel", ("Ana Uno", 131), ("Bea Due", -151))))
# One event is listed again after it began, and one that was live is corrected back to scheduled.
again_listed = [listed("i", "Lia Nona", "Mara Decima"), odds("i", "fanduel", ("Lia Nona", 115), ("Mara Decima", -135))]
called_off = [listed("j", "Nina Prima", "Olga Secunda"), odds("j", "fanduel", ("Nina Prima", 116), ("Olga Secunda", -136))]
seen.append(published(*again_listed, *called_off))
push(live("i"), live("j"))
seen.append(published(odds("i", "fanduel", ("Lia Nona", 215), ("Mara Decima", -235))))
seen.append(published({"type": "remove", "ref": "i"}))
push({"type": "score", "ref": "j", "status": "scheduled", "correction": True})
seen.append(published(again_listed[0], odds("i", "fanduel", ("Lia Nona", 315), ("Mara Decima", -335))))
# Two events that are merged: the records of the newer id move to the older one.
twins = [("f", "Kim Undici", "Lea Dodici", "fanduel"), ("h", "Kimberly Undecimo", "Lea Duodecimo", "pinnacle")]
for ref, home, away, bookmaker in twins:
    seen.append(published(listed(ref, home, away), odds(ref, bookmaker, (home, 110), (away, -130))))
seen.append(published(change=lambda: merge("Kim Undici", "Kimberly Undecimo")))
seen.append(published(odds("h", "pinnacle", ("Kimberly Undecimo", 112), ("Lea Duodecimo", -132))))
# For a bookmaker and a sport that the next run does not know.
kendo = {**listed("k", "Mia Tredici", "Noa Uno"), "sport": "kendo"}
zedbet = [kendo, odds("k", "fanduel", ("Mia Tredici", 105), ("Noa Uno", -125))]
zedbet += [odds("a", "zedbet", ("Ana Uno", 141), ("Bea Due", -161))]
seen.append(published(*zedbet))
times = [at for at, _ in seen]
SEEN.write_text(json.dumps(seen))
linesman("history", "flush")
check(seen)
check_macros(times)
linesman("history", "compact")
linesman("history", "verify", "--sample", "5")
check(seen)
check_macros(times)
check_study()
check_command_line(times[0])
check_walk()
lines = check_closing()
print(f"{len(seen)} publications, each read by {len(programs())} programs and the macros; {lines} closing prices")
