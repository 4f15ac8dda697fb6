"""The scenarios of sdk/scenarios.json, each for both clients. A test has the name of its scenario."""

from __future__ import annotations

import base64
import gc
import gzip
import inspect
import io
import json
import logging
import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import test_streams
from support import DOCUMENT, KEY, REPOSITORY, Clients, FakeClock, Proxy, pages

import linesman
from linesman import _client, types

# The method of each operation, and the arguments to call it with.
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "list_sports": ("sports", ()),
    "list_books": ("books", ()),
    "get_status": ("status", ()),
    "get_history": ("history", ()),
    "get_odds": ("odds", ("sport",)),
    "get_scores": ("scores", ("sport",)),
    "list_events": ("events", ("sport",)),
    "get_event": ("event", ("sport", "event")),
    "get_best": ("best", ("sport",)),
    "get_fair": ("fair", ("sport",)),
    "list_arbitrages": ("arbitrage", ("sport",)),
    "list_ev": ("ev", ("sport",)),
    "list_middles": ("middles", ("sport",)),
    "get_coverage": ("coverage", ("sport",)),
    "explain_event": ("explain", ("sport", "event")),
    "get_closing": ("closing", ("sport",)),
    "get_price_path": ("price_path", ("sport", "event")),
}
MAX_AGE = {"Cache-Control": "private, max-age=20"}


def test_every_scenario_has_a_test() -> None:
    scenarios = json.loads((REPOSITORY / "sdk/scenarios.json").read_text())
    tests = {**globals(), **vars(test_streams)}
    missing = [one["name"] for one in scenarios if f"test_{one['name']}" not in tests]
    assert missing == []


def test_settings_from_environment(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, argument = Proxy.make(), Proxy.make()
    monkeypatch.setenv("LINESMAN_URL", environment.url)
    clients.linesman().status()
    clients.linesman(argument.url, os.environ["LINESMAN_TEST_QUOTA_KEY"]).status()
    assert [one["headers"]["x-api-key"] for one in environment.requests()] == [KEY]
    assert [one["headers"]["x-api-key"] for one in argument.requests()] == [os.environ["LINESMAN_TEST_QUOTA_KEY"]]
    monkeypatch.delenv("LINESMAN_URL")
    assert "http://127.0.0.1:8080" in repr(clients.linesman())
    for url in ["127.0.0.1:8080", "ftp://127.0.0.1", "http://user:secret@127.0.0.1", "http://[::1", "http://a/?b=c"]:
        with pytest.raises(linesman.InvalidConfiguration) as caught:
            linesman.Linesman(url)
        assert "secret" not in str(caught.value)


def test_key_in_header_only(clients: Clients, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = os.environ["LINESMAN_TEST_FEED_TOKEN"]
    broken = {"status": 200, "body": "no JSON"}
    proxy = Proxy.make(script=[{}, {}, {"fault": "internal"}, {"drop": True}, {"status": 418, "body": "tea"}, broken])
    client, feed = clients.linesman(proxy.url, cache=False), clients.feed(proxy.url, token)
    output = [repr(client), repr(feed), repr(client.odds("mma"))]
    output += [repr(next(iter(client.odds("mma", limit=1))))]
    output += [repr(client.status())]
    for _ in range(2):
        with pytest.raises(linesman.LinesmanError) as caught:
            client.sports().to_pandas() if clients.kind == "threads" else list(client.sports())
        output += shown(caught.value)
    dead = Proxy.make(script=[{"drop": True}] * 3)
    with pytest.raises(linesman.ConnectionFailed) as lost:
        clients.linesman(dead.url).status()
    output += shown(lost.value)
    with pytest.raises(linesman.LinesmanError) as refused:
        clients.feed(Proxy.make(script=[{"status": 400, "body": "{}"}]).url, token).push([{"type": "heartbeat"}])
    output += shown(refused.value)
    with pytest.raises(linesman.InvalidConfiguration) as malformed:
        clients.linesman(proxy.url, KEY + "\n")
    output += [str(malformed.value), caplog.text]
    assert "HTTP Request" in caplog.text, "the log of requests is not looked at"
    for text in output:
        assert KEY not in text and token not in text, text
    for request in proxy.requests():
        assert request["headers"].pop("x-api-key") == KEY
        assert KEY not in json.dumps(request)


def shown(error: BaseException) -> list[str]:
    """Everything that tools show of an error, including the variables of our frames."""
    ours = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if "linesman" in frame.f_code.co_filename]
    variables = [repr(value) for frame in ours for value in frame.f_locals.values()]
    return [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error), *variables]


def test_user_agent_names_client(clients: Clients) -> None:
    proxy = Proxy.make()
    clients.linesman(proxy.url).status()
    assert proxy.requests()[0]["headers"]["user-agent"] == f"linesman-client-python/{linesman.__version__}"


def test_every_operation_has_a_method(clients: Clients) -> None:
    under_v1 = [item["get"] for path, item in DOCUMENT["paths"].items() if path.startswith("/v1/")]
    # The stream is tested in test_streams.py, files below: the sandbox has none.
    assert {operation["operationId"] for operation in under_v1} == {"get_stream", "get_export", *METHODS}
    client = clients.linesman()
    arguments = {"sport": "mma", "event": next(iter(client.events("mma", status="scheduled")))["id"]}
    for method, names in METHODS.values():
        answer = getattr(client, method)(*(arguments[name] for name in names))
        # The first page is enough: very many events have started.
        answer = answer if hasattr(answer, "data") else next(iter(answer.pages()))
        assert answer.meta.request_id.startswith("req_"), method
    filters = set(_client.OddsFilter.__annotations__) | {"group_by"}
    assert filters == set(types.GetOddsParams.__annotations__)
    bouts = pages(client.odds("mma", group_by="bout", limit=2, max_items=3))
    assert [len(page.items) for page in bouts] == [2, 2] and bouts[0].data["sport"] == "mma"


def test_export_is_written_in_pieces(clients: Clients) -> None:
    target = "/v1/sports/mma/export/odds/2026-11-14"
    headers = {"ETag": '"a"', "Link": f'<{target}?lineage=3>; rel="next"', "Content-Type": "application/octet-stream"}
    busy = {"status": 503, "headers": {"Retry-After": "1"}, "body": "{}"}
    whole = {"status": 200, "headers": headers, "body": "PAR1" * 1000, "repeat": 300}
    proxy = Proxy.make(script=[busy, whole, {**whole, "broken": True}])
    client, file = clients.linesman(proxy.url, clock=FakeClock()), io.BytesIO()
    written = client.export("mma", "odds", "2026-11-14", file, lineage=2)
    assert file.getvalue() == b"PAR1" * 300_000 and written.bytes == 1_200_000
    assert written.lineage == 3 and written.meta.etag == '"a"'
    assert [one["target"] for one in proxy.requests()] == [target + "?lineage=2"] * 2
    with pytest.raises(linesman.ConnectionFailed) as lost:
        client.export("mma", "odds", "2026-11-14", io.BytesIO())
    assert not any(KEY in text for text in shown(lost.value))
    with pytest.raises(linesman.Forbidden):
        clients.linesman().export("mma", "odds", "2026-11-14", io.BytesIO())


def test_lists_are_joined_by_commas(clients: Clients) -> None:
    proxy = Proxy.make()
    client = clients.linesman(proxy.url)
    list(client.odds("mma", regions=["us", "uk"], market="moneyline", max_items=1))
    list(client.ev("mma", bookmakers=("bet365", "fanduel"), min_ev=0.00001))
    assert [request["target"] for request in proxy.requests()] == [
        "/v1/sports/mma/odds?regions=us,uk&market=moneyline",
        "/v1/sports/mma/ev?bookmakers=bet365,fanduel&min_ev=0.00001",
    ]


def test_pages_equal_one_long_page(clients: Clients) -> None:
    client = clients.linesman(cache=False)
    calls: list[tuple[Any, dict[str, Any]]] = [
        (client.events, {"status": "final"}),
        (client.odds, {"market": "moneyline", "bookmaker": "fanduel"}),
        (client.fair, {"market": "moneyline"}),
    ]
    for call, filters in calls:
        # The data changes at a full hour: for the comparison, two reads before and after must be the same.
        while True:
            before = pages(call("boxing", limit=500, **filters))
            short = list(call("boxing", limit=7, **filters))
            after = pages(call("boxing", limit=500, **filters))
            if [page.meta.etag for page in before] == [page.meta.etag for page in after]:
                break
        assert len(before) == 1 and len(short) > 14
        assert short == before[0].items


def test_max_items_ends_early(clients: Clients) -> None:
    proxy = Proxy.make()
    client = clients.linesman(proxy.url)
    assert len(list(client.odds("mma", limit=3, max_items=6))) == 6
    assert len(proxy.requests()) == 2
    assert len(list(client.odds("mma", limit=3, max_items=7))) == 7
    assert list(client.odds("mma", max_items=0)) == []
    assert len(proxy.requests()) == 3


def test_pages_one_by_one(clients: Clients) -> None:
    proxy = Proxy.make()
    reading = iter(clients.linesman(proxy.url).odds("mma", limit=3).pages())
    first = next(reading)
    assert len(proxy.requests()) == 1
    second = next(reading)
    assert len(proxy.requests()) == 2
    assert len(first.items) == len(second.items) == 3 and first.items != second.items
    assert first.data == first.items and first.meta.request_id != second.meta.request_id
    # A server that names the same page again, or none, does not cause an endless list.
    for link in ["</v1/sports?a=b>; rel=next", "</v1/sports>; rel=next"]:
        looped = Proxy.make(headers={"Link": link})
        with pytest.raises(linesman.LinesmanError):
            list(clients.linesman(looped.url, cache=False).sports())
        assert len(looped.requests()) <= 2


def test_retry_after_is_respected(clients: Clients) -> None:
    limited = {"status": 429, "headers": {"Retry-After": "30"}, "body": body("rate_limited")}
    for chance, least, most in [(0.0, 30.0, 30.0), (0.999, 32.9, 33.0)]:
        clock = FakeClock(chance)
        proxy = Proxy.make(script=[limited, limited])
        assert clients.linesman(proxy.url, clock=clock).status().data["status"] in ("ok", "degraded")
        assert len(clock.waits) == 2 and all(least <= wait <= most for wait in clock.waits)
        assert [request["status"] for request in proxy.requests()] == [429, 429, 200]
    clock = FakeClock(0.0)
    dated = {"Retry-After": "Tue, 17 Nov 2026 10:00:09 GMT", "Date": "Tue, 17 Nov 2026 10:00:00 GMT"}
    proxy = Proxy.make(script=[{"fault": "unavailable"}, {"status": 503, "headers": dated}])
    clients.linesman(proxy.url, clock=clock).status()
    assert clock.waits == [30.0, 9.0]


def test_backoff_without_retry_after(clients: Clients) -> None:
    for status in [500, 502, 504]:
        for chance, waits in [(0.0, [0.375, 0.75]), (0.5, [0.5, 1.0])]:
            clock = FakeClock(chance)
            proxy = Proxy.make(script=[{"status": status, "body": "no JSON"}] * 3)
            with pytest.raises(linesman.LinesmanError) as caught:
                clients.linesman(proxy.url, clock=clock).status()
            assert caught.value.status == status and clock.waits == waits
            assert len(proxy.requests()) == 3
    proxy = Proxy.make(script=[{"fault": "internal"}])
    clients.linesman(proxy.url).status()
    assert [request["status"] for request in proxy.requests()] == [500, 200]


def test_lost_connection_is_retried(clients: Clients) -> None:
    clock = FakeClock()
    proxy = Proxy.make(script=[{"drop": True}, {"drop": True}])
    clients.linesman(proxy.url, clock=clock).status()
    assert clock.waits == [0.5, 1.0]
    proxy = Proxy.make(script=[{"drop": True}] * 3)
    with pytest.raises(linesman.ConnectionFailed) as caught:
        clients.linesman(proxy.url).status()
    assert len(proxy.requests()) == 3
    assert caught.value.code == "connection_failed" and caught.value.status is None
    assert proxy.url in str(caught.value)


def test_quota_exceeded_fails_at_once(clients: Clients) -> None:
    clock = FakeClock()
    proxy = Proxy.make(script=[{"fault": "quota_exceeded"}])
    with pytest.raises(linesman.QuotaExceeded) as caught:
        list(clients.linesman(proxy.url, clock=clock).sports())
    assert len(proxy.requests()) == 1 and clock.waits == []
    assert caught.value.retry_after is not None and caught.value.retry_after > 0
    proxy = Proxy.make(script=[{"status": 429, "headers": {"Retry-After": "1"}, "body": body("quota_exceeded")}])
    with pytest.raises(linesman.QuotaExceeded):
        list(clients.linesman(proxy.url, clock=clock).sports())
    assert clock.waits == []


def test_long_wait_fails_at_once(clients: Clients) -> None:
    clock = FakeClock(0.999)
    proxy = Proxy.make(script=[{"status": 503, "headers": {"Retry-After": "61"}, "body": body("maintenance")}])
    with pytest.raises(linesman.Maintenance) as caught:
        clients.linesman(proxy.url, clock=clock).status()
    assert caught.value.retry_after == 61 and clock.waits == []
    proxy = Proxy.make(script=[{"status": 503, "headers": {"Retry-After": "61"}, "body": body("maintenance")}])
    clients.linesman(proxy.url, clock=clock, max_wait=61).status()
    assert len(clock.waits) == 1


def test_cached_response_needs_no_request(clients: Clients) -> None:
    key, clock = os.environ["LINESMAN_TEST_QUOTA_KEY"], FakeClock()
    proxy = Proxy.make(headers=MAX_AGE)
    client = clients.linesman(proxy.url, key, clock=clock)
    first = pages(client.odds("mma", limit=3, max_items=3))[0]
    clock.time += 19
    again = pages(client.odds("mma", limit=3, max_items=3))[0]
    assert (first.meta.from_cache, again.meta.from_cache) == (False, True)
    assert again.items == first.items and again.items is not first.items
    assert len(proxy.requests()) == 1
    used = client.status().meta.requests_used
    assert used == first.meta.requests_used, "a response from the cache costs quota"


def test_unchanged_response_is_reused(clients: Clients) -> None:
    clock = FakeClock()
    proxy = Proxy.make(headers=MAX_AGE)
    client = clients.linesman(proxy.url, clock=clock)
    first = pages(client.books())[0]
    clock.time += 20
    again = pages(client.books())[0]
    sent = proxy.requests()[1]
    assert sent["status"] == 304 and sent["headers"]["if-none-match"] == first.meta.etag
    assert again.items == first.items and again.meta.from_cache
    assert again.meta.request_id != first.meta.request_id
    clock.time += 19
    assert pages(client.books())[0].items == first.items
    assert len(proxy.requests()) == 2, "a 304 renews the response"
    with pytest.raises(linesman.LinesmanError):
        list(clients.linesman(Proxy.make(script=[{"status": 304}]).url).books())


def test_status_is_never_cached(clients: Clients) -> None:
    # Even if an intermediary allows it.
    proxy = Proxy.make(headers={**MAX_AGE, "ETag": '"1"'})
    client = clients.linesman(proxy.url)
    assert [client.status().meta.from_cache for _ in range(2)] == [False, False]
    assert len(proxy.requests()) == 2
    assert not any("if-none-match" in request["headers"] for request in proxy.requests())


def test_cache_can_be_disabled(clients: Clients) -> None:
    proxy = Proxy.make(headers=MAX_AGE)
    client = clients.linesman(proxy.url, cache=False)
    assert [pages(client.books())[0].meta.from_cache for _ in range(2)] == [False, False]
    assert len(proxy.requests()) == 2
    assert not any("if-none-match" in request["headers"] for request in proxy.requests())


def test_cache_is_bounded(clients: Clients) -> None:
    proxy = Proxy.make(headers=MAX_AGE)
    client = clients.linesman(proxy.url)

    def read(limit: int) -> bool:
        from_cache: bool = pages(client.events("mma", limit=limit, max_items=1))[0].meta.from_cache
        return from_cache

    for limit in range(1, 129):
        read(limit)
    assert read(1) and len(proxy.requests()) == 128
    read(129)
    assert read(1) and not read(2), "the one unused longest goes first"


def test_errors_have_types(clients: Clients) -> None:
    codes = DOCUMENT["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"]
    for code in codes:
        answer = {"status": 400, "headers": {"Retry-After": "5"}, "body": body(code, param="limit")}
        with pytest.raises(linesman.LinesmanError) as caught:
            # Each attempt gets the same answer.
            clients.linesman(Proxy.make(script=[answer] * 3).url).status()
        error = caught.value
        assert type(error).__name__ == "".join(word.capitalize() for word in code.split("_"))
        assert type(error) is not linesman.LinesmanError
        told = (error.code, error.message, error.param, error.request_id, error.status, error.retry_after)
        assert told == (code, "for people", "limit", "req_1", 400, 5.0)
    client = clients.linesman()
    with pytest.raises(linesman.InvalidParameter) as refused:
        list(client.odds("mma", limit=501))
    assert (refused.value.param, refused.value.status) == ("limit", 400)
    assert refused.value.request_id is not None and refused.value.request_id in str(refused.value)
    with pytest.raises(linesman.SportNotFound):
        list(client.odds("a/b?c#d"))
    with pytest.raises(linesman.EventNotFound):
        client.event("mma", "evt_none")
    with pytest.raises(linesman.AuthenticationFailed):
        clients.linesman(key="").status()


def test_unknown_code_gives_base_type(clients: Clients) -> None:
    proxy = Proxy.make(script=[{"fault": "quota_exceeded"}], unknown=["codes"])
    with pytest.raises(linesman.LinesmanError) as caught:
        clients.linesman(proxy.url).status()
    assert type(caught.value) is linesman.LinesmanError and caught.value.code == "unknown_code"
    for text in ["<html>", "[]", '{"error": 1}', '{"error": {"code": "x"}}', ""]:
        with pytest.raises(linesman.LinesmanError) as broken:
            clients.linesman(Proxy.make(script=[{"status": 404, "body": text}]).url).status()
        assert type(broken.value) is linesman.LinesmanError and broken.value.status == 404
    for text in ["<html>", "[]", "1", "null", "[" * 100_000]:
        with pytest.raises(linesman.LinesmanError) as odd:
            clients.linesman(Proxy.make(script=[{"status": 200, "body": text}]).url).status()
        assert odd.value.code == "unexpected_response"
    with pytest.raises(linesman.LinesmanError):
        list(clients.linesman(Proxy.make(script=[{"status": 200, "body": "{}"}]).url).odds("mma"))
    moved = Proxy.make(script=[{"status": 302, "headers": {"Location": "/v1/status"}}])
    with pytest.raises(linesman.LinesmanError):
        clients.linesman(moved.url).status()
    assert len(moved.requests()) == 1, "a redirect is not followed: the key belongs to one server"


def test_unknown_fields_and_values_are_accepted(clients: Clients) -> None:
    client = clients.linesman(Proxy.make(unknown=["fields", "values"]).url)
    record = next(iter(client.odds("mma", limit=2)))
    assert record["market"] == record["format"] == "unknown_value"
    assert record["unknown_field"] == record["outcomes"][0]["unknown_field"] == {"new": True}
    assert next(iter(client.books()))["regions"][0] == "unknown_value"
    assert client.status().data["status"] == "unknown_value"
    frame = client.odds("mma", limit=5, max_items=5).to_polars()
    assert "unknown_field.new" in frame.columns


def test_results_carry_meta(clients: Clients) -> None:
    client = clients.linesman()
    status = client.status()
    assert status.meta.etag is None and not status.meta.from_cache
    assert status.meta.requests_remaining > 0 and status.meta.requests_used >= 0
    page = pages(client.odds("mma", limit=2, max_items=1))[0]
    assert page.meta.etag.startswith('"') and page.meta.request_id.startswith("req_")
    assert page.meta.requests_used > status.meta.requests_used
    assert page.meta.cursor and status.meta.cursor is None
    odd = Proxy.make(headers={"x-requests-used": "9" * 5000, "x-requests-remaining": "many"})
    assert clients.linesman(odd.url).status().meta.requests_used is None


def test_push_counts_lines_of_whole_input(clients: Clients) -> None:
    proxy = Proxy.make()
    feed = clients.feed(proxy.url, os.environ["LINESMAN_TEST_FEED_TOKEN"])
    receipt = feed.push(messages(12_000))
    accounted = receipt["accepted"] + receipt["unchanged"] + receipt["superseded"]
    assert (accounted, receipt["rejected_total"]) == (11_997, 3)
    assert [line["line"] for line in receipt["rejected"]] == [7, 5_001, 12_000]
    sent = proxy.requests()
    bodies = [gzip.decompress(base64.b64decode(request["body"])) for request in sent]
    assert [len(text.splitlines()) for text in bodies] == [5_000, 5_000, 2_000]
    assert all(request["headers"]["content-encoding"] == "gzip" for request in sent)
    # Long messages: the limit is 4 MiB, and a longer message is rejected here.
    long = [{"type": "x", "text": "é" * (1 << 20)}] * 3 + [{"type": "x", "text": "é" * (1 << 22)}]
    receipt = feed.push(long)
    assert len(proxy.requests()) == 6
    assert [line["line"] for line in receipt["rejected"]] == [1, 2, 3, 4]


def messages(count: int) -> Iterator[dict[str, object]]:
    """Heartbeats, except for three messages that are rejected: the 7th, the first of the second body and the last."""
    for number in range(1, count + 1):
        if number in (7, 5_001, count):
            yield {"type": "unheard_of"}
        else:
            yield {"type": "heartbeat", "bookmaker": "fanduel", "sport": "mma"}


def test_push_retries_unavailable(clients: Clients) -> None:
    token, clock = os.environ["LINESMAN_TEST_FEED_TOKEN"], FakeClock(0.0)
    heartbeat = {"type": "heartbeat", "bookmaker": "fanduel", "sport": "mma"}
    unavailable = {"status": 503, "headers": {"Retry-After": "7"}, "body": body("unavailable")}
    proxy = Proxy.make(script=[unavailable])
    receipt = clients.feed(proxy.url, token, clock=clock).push([heartbeat])
    assert receipt["rejected_total"] == 0 and clock.waits == [7.0]
    assert [request["status"] for request in proxy.requests()] == [503, 200]
    # The second body fails permanently: the error contains the receipt of the first.
    proxy = Proxy.make(script=[{}, {"status": 409, "body": body("feed_paused")}])
    with pytest.raises(linesman.FeedPaused) as caught:
        clients.feed(proxy.url, token).push([heartbeat] * 5_001)
    confirmed = caught.value.receipt
    assert confirmed is not None and confirmed["accepted"] + confirmed["unchanged"] == 5_000


def test_examples_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FEED_TOKEN", os.environ["LINESMAN_TEST_FEED_TOKEN"])
    found = 0
    for file in [REPOSITORY / "sdk/python/README.md", REPOSITORY / "docs/clients/python.md"]:
        for block in re.finditer(r"^```python\n(.*?)^```", file.read_text(), re.DOTALL | re.MULTILINE):
            line = file.read_text()[: block.start()].count("\n") + 1
            exec(compile("\n" * line + block[1], str(file), "exec"), {"__name__": "__main__"})
            found += 1
    # Clients that an example leaves open are closed here, not in the middle of another test.
    gc.collect()
    assert found > 5 and capsys.readouterr().out


def test_programs_of_the_docs_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # One of them takes the address as an argument.
    monkeypatch.setattr("sys.argv", ["program", os.environ["LINESMAN_URL"]])
    examples = json.loads(Path(os.environ["LINESMAN_TEST_EXAMPLES"]).read_text())
    for one in examples:
        if one["language"] == "python":
            exec(compile(one["code"], one["page"], "exec"), {"__name__": "__main__"})
            gc.collect()
    printed = capsys.readouterr()
    assert "'superseded': 0, 'rejected_total': 0}\n" in printed.out and " records at the end; [" in printed.out
    assert KEY not in printed.out + printed.err and os.environ["FEED_TOKEN"] not in printed.out + printed.err


def body(code: str, **more: str) -> str:
    error = {"code": code, "message": "for people", "request_id": "req_1", **more}
    return json.dumps({"error": error})


def test_both_clients_have_the_same_methods() -> None:
    def methods(client: type) -> dict[str, list[str]]:
        public = inspect.getmembers(client, inspect.isfunction)
        return {name: list(inspect.signature(one).parameters) for name, one in public if not name.startswith("_")}

    assert methods(linesman.Linesman) == methods(linesman.AsyncLinesman)
    assert methods(linesman.Feed) == methods(linesman.AsyncFeed)
