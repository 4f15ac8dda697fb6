"""The scenarios of sdk/scenarios.json about changes: streams, and lists since a cursor."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from support import KEY, REPOSITORY, Clients, FakeClock, Proxy, pages

import linesman

CHANNELS = ("odds", "scores", "events")
FILTERS: dict[str, dict[str, str]] = {"odds": {"market": "moneyline"}, "scores": {}, "events": {}}
ID_OF = {"odds": "id", "scores": "event_id", "events": "id"}


def ago(hours: int) -> str:
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=hours)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


def in_the_past(client: Any, **params: Any) -> Any:
    """A stream of three past hours: it ends by itself."""
    return client.stream(sports=["boxing"], since=ago(5), until=ago(2), freshness="records", **params)


def test_stream_folds_to_the_lists(clients: Clients) -> None:
    client = clients.linesman(cache=False)
    changes = in_the_past(client, channels=CHANNELS, market="moneyline")
    changed = 0
    for update in changes:
        assert update.cut["published"] and update.reset is None and changes.cursor == update.cut["cursor"]
        changed += sum(event["event"] == "delta" for event in update.events)
        for channel in CHANNELS:
            listed = getattr(client, channel)("boxing", as_of=update.cut["at"], limit=500, **FILTERS[channel])
            assert getattr(changes.state, channel) == {one[ID_OF[channel]]: one for one in listed}
    assert changed > 0 and changes.state.odds
    # And from now on.
    changes = client.stream(sports=["boxing"], bookmaker="fanduel", heartbeat=5)
    update = next(iter(changes))
    assert [event["event"] for event in update.events][:2] == ["hello", "snapshot"]
    listed = client.odds("boxing", bookmaker="fanduel", as_of=update.cut["at"], limit=500)
    assert sorted(changes.state.odds) == sorted(record["id"] for record in listed)
    changes.close()
    assert "boxing" in repr(changes)


def answer(*blocks: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """A response with these events."""
    text = "retry: 2000\n" + "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in blocks)
    return {"status": 200, "headers": {"Content-Type": "text/event-stream"}, "body": text, **more}


def hello(resumed: bool = False) -> tuple[str, Any]:
    return "hello", {"stream": "str_1", "resumed": resumed, "mode": "publication", "channels": ["odds"]}


def snapshot(*ids: str, channel: str = "odds") -> tuple[str, Any]:
    records = [{"id": one, "last_update": "2026-11-14T23:38:00Z"} for one in ids]
    return "snapshot", {"channel": channel, "sport": "mma", "part": 1, "parts": 1, "records": records}


def cut(cursor: str) -> tuple[str, Any]:
    return "cut", {"cursor": cursor, "at": "2026-11-14T23:38:00.000Z", "published": True}


def end(code: str, retry_after_s: int = 0) -> tuple[str, Any]:
    return "end", {"code": code, "message": "for people", "retry_after_s": retry_after_s}


DONE = answer(hello(True), end("done"))


def cursors(proxy: Proxy) -> list[str | None]:
    return [request["headers"].get("last-event-id") for request in proxy.requests()]


def test_stream_resumes_after_a_lost_connection(clients: Clients) -> None:
    removed = [{"id": "odd_1", "event_id": "evt_1", "reason": "no_prices"}]
    delta = {"channel": "odds", "sport": "mma", "upserts": [{"id": "odd_3"}], "removed": removed}
    touched = {"sport": "mma", "sources": [], "touched": {"2026-11-14T23:39:00Z": ["odd_2", "odd_unknown"]}}
    proxy = Proxy.make(
        script=[
            answer(hello(), snapshot("odd_1", "odd_2"), cut("c1"), snapshot("odd_9"), broken=True),
            {"drop": True},
            answer(hello(True), ("delta", delta), ("fresh", touched), cut("c2")),
            DONE,
        ]
    )
    clock = FakeClock(0.5)
    changes = clients.linesman(proxy.url, clock=clock).stream(sports="mma")
    reading = iter(changes)
    first = next(reading)
    assert sorted(changes.state.odds) == ["odd_1", "odd_2"]
    next(reading)
    assert sorted(changes.state.odds) == ["odd_2", "odd_3"]
    assert changes.state.odds["odd_2"]["last_update"] == "2026-11-14T23:39:00Z"
    assert first.events[1]["data"]["records"][1]["last_update"] == "2026-11-14T23:38:00Z"
    # The server's `retry`, then a retry of the request.
    assert clock.waits == [2.0, 0.5]
    assert list(reading) == [] and changes.cursor == "c2"
    assert cursors(proxy) == [None, "c1", "c1", "c2"]
    lost = answer(hello(True), snapshot("odd_9"), broken=True)
    start = answer(hello(), snapshot("odd_1"), cut("c1"), broken=True)
    proxy = Proxy.make(script=[start, lost, lost, answer(hello(True), cut("c2")), DONE])
    changes = clients.linesman(proxy.url).stream()
    reading = iter(changes)
    next(reading)
    with pytest.raises(linesman.ConnectionFailed):
        next(reading)
    assert [update.cut["cursor"] for update in changes] == ["c2"] and list(changes.state.odds) == ["odd_1"]
    assert cursors(proxy) == [None, "c1", "c1", "c1", "c2"]


def test_stream_reset_is_reported(clients: Clients) -> None:
    reset = ("reset", {"reason": "expired"})
    again = answer(hello(), reset, snapshot("odd_4"), cut("c2"))
    proxy = Proxy.make(script=[answer(hello(), snapshot("odd_1", "odd_2"), cut("c1")), again, DONE])
    changes = clients.linesman(proxy.url).stream()
    updates = list(changes)
    assert [update.reset for update in updates] == [None, "expired"]
    assert list(changes.state.odds) == ["odd_4"]


def test_stream_accepts_what_is_unknown(clients: Clients) -> None:
    novel, comment = ("novel", [1]), ("", "no event")
    script = [answer(hello(), novel, comment, snapshot("x_1", channel="odd"), snapshot("odd_1"), cut("c1")), DONE]
    changes = clients.linesman(Proxy.make(script=script).url).stream()
    (update,) = list(changes)
    others = [event for event in update.events if event["event"] == "other"]
    assert others == [
        {"event": "other", "name": "novel", "data": "[1]"},
        {"event": "other", "name": "", "data": '"no event"'},
    ]
    assert len(update.events) == 5 and list(changes.state.odds) == ["odd_1"]
    client = clients.linesman(Proxy.make(unknown=["fields", "values"]).url)
    changes = client.stream(sports=["boxing"], since=ago(5), until=ago(2))
    updates = list(changes)
    assert updates and all(update.cut["unknown_field"] == {"new": True} for update in updates)
    assert changes.state.odds
    for record in changes.state.odds.values():
        assert record["market"] == "unknown_value" and record["outcomes"][0]["unknown_field"] == {"new": True}


def test_stream_is_bounded(clients: Clients) -> None:
    huge = {**answer(), "body": "x" * 65_536, "repeat": 300}
    wrong: list[dict[str, Any]] = [
        huge,
        {**huge, "body": "data: " + "x" * 65_000 + "\n"},
        {**answer(), "body": "event: cut\ndata: {}\n\n"},
        {**answer(), "body": "event: snapshot\ndata: [[[\n\n"},
        answer(("snapshot", {"channel": "odds", "records": [{"id": 1}]})),
        answer(("delta", {"channel": "scores", "upserts": [], "removed": [None]})),
        answer(("fresh", {"touched": {"now": [1]}})),
        {"status": 200, "body": "{}"},
    ]
    start = answer(hello(), snapshot("odd_1"), cut("c1"))
    proxy = Proxy.make(script=[start, *wrong, answer(hello(True), cut("c2")), DONE])
    changes = clients.linesman(proxy.url).stream()
    reading = iter(changes)
    next(reading)
    for _ in wrong:
        with pytest.raises(linesman.LinesmanError) as caught:
            next(reading)
        assert caught.value.code == "unexpected_response"
        reading = iter(changes)
    assert [update.cut["cursor"] for update in changes] == ["c2"] and list(changes.state.odds) == ["odd_1"]
    assert cursors(proxy) == [None, *["c1"] * (len(wrong) + 1), "c2"]


def test_stream_ends(clients: Clients) -> None:
    clock = FakeClock(0.5)
    script = [answer(hello(), end("unavailable", 3)), answer(hello(), snapshot(), cut("c1"), end("slow")), DONE]
    changes = clients.linesman(Proxy.make(script=script).url, clock=clock).stream()
    assert [update.cut["cursor"] for update in changes] == ["c1"]
    assert clock.waits == [3.0, 0.5] and list(changes) == []
    # The connection was lost before the end came.
    proxy = Proxy.make(script=[answer(hello(), snapshot(), cut("c1"), broken=True), {"status": 204}])
    changes = clients.linesman(proxy.url, clock=FakeClock()).stream()
    assert [update.cut["cursor"] for update in changes] == ["c1"] and list(changes) == []
    assert cursors(proxy) == [None, "c1"]
    proxy = Proxy.make(script=[answer(hello(), end("authentication_failed"))])
    changes = clients.linesman(proxy.url).stream()
    with pytest.raises(linesman.AuthenticationFailed) as caught:
        next(iter(changes))
    assert caught.value.message == "for people" and list(changes) == [] and len(proxy.requests()) == 1
    # Longer than the client waits by itself; the caller decides.
    clock = FakeClock()
    proxy = Proxy.make(script=[answer(hello(), end("maintenance", 61)), DONE])
    changes = clients.linesman(proxy.url, clock=clock).stream()
    with pytest.raises(linesman.Maintenance) as closed:
        next(iter(changes))
    assert closed.value.retry_after == 61 and clock.waits == []
    assert list(changes) == [] and clock.waits == [61.0]
    with pytest.raises(linesman.SportNotFound):
        next(iter(clients.linesman().stream(sports=["chess"])))


def test_since_brings_only_changes(clients: Clients) -> None:
    client = clients.linesman(cache=False)
    filters = {"market": "moneyline", "bookmaker": "fanduel"}
    before = pages(client.odds("boxing", as_of=ago(5), limit=500, **filters))[0]
    known = {record["id"]: record for record in before.items}
    proxy = Proxy.make()
    odds = clients.linesman(proxy.url, os.environ["LINESMAN_TEST_QUOTA_KEY"]).odds("boxing", limit=3, **filters)
    delta = odds.since(before.meta.cursor)
    assert delta.upserts
    known.update({record["id"]: record for record in delta.upserts})
    for gone in delta.removed:
        known.pop(gone["id"], None)
    now = {record["id"]: record for record in client.odds("boxing", limit=500, **filters)}
    assert {one: record["outcomes"] for one, record in known.items()} == {
        one: record["outcomes"] for one, record in now.items()
    }
    nothing = odds.since(delta.cursor)
    assert (nothing.upserts, nothing.removed) == ([], []) and nothing.cursor
    assert nothing.meta.requests_used == delta.meta.requests_used
    sent = proxy.requests()
    assert [request["status"] for request in sent] == [200, 204]
    assert "limit" not in sent[0]["target"] and "since=" in sent[0]["target"]
    expired = {"error": {"code": "cursor_expired", "message": "for people", "request_id": "req_1"}}
    proxy = Proxy.make(script=[{"status": 410, "body": json.dumps(expired)}, {"status": 200, "body": "[]"}])
    scores = clients.linesman(proxy.url).scores("mma")
    with pytest.raises(linesman.CursorExpired):
        scores.since("A1")
    with pytest.raises(linesman.LinesmanError) as caught:
        scores.since("A1")
    assert caught.value.code == "unexpected_response"


def test_line_alert_prints_lines_that_move() -> None:
    program = REPOSITORY / "examples/line-alert/line_alert.py"
    assert len(program.read_text().splitlines()) < 80

    def run(**env: str) -> subprocess.CompletedProcess[str]:
        paths = {"PYTHONPATH": str(REPOSITORY / "sdk/python/src"), "PYTHONDONTWRITEBYTECODE": "1"}
        past = {"SINCE": ago(5), "UNTIL": ago(2), "MOVE": "0.001", "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, str(program), "boxing", "mma"]
        return subprocess.run(
            command, env={**os.environ, **paths, **past, **env}, capture_output=True, encoding="utf-8", timeout=120
        )

    done = run()
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines and all(" → " in line and line.startswith("20") for line in lines)
    assert KEY not in done.stdout
    refused = run(LINESMAN_KEY="sk_test_wrong")
    assert refused.returncode == 1 and "authentication_failed" in refused.stderr
    assert "Traceback" not in refused.stderr and "sk_test_wrong" not in refused.stderr
