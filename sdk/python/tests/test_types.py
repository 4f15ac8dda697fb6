"""What a type checker sees; mypy and pyright read this file. Nothing here sends a request."""

from __future__ import annotations

from typing import Any, assert_type

from linesman import AsyncLinesman, AsyncList, Delta, Linesman, List, Page, RecordList, Result, types


def test_lists_and_their_items_are_typed() -> None:
    with Linesman("http://127.0.0.1:1") as client:
        odds = client.odds("mma", regions=["us"], event_ids="evt_1", limit=10, max_items=5)
        assert_type(odds, RecordList[types.OddsRecord, list[types.OddsRecord]])
        assert_type(client.odds("mma", group_by="bout"), List[types.Bout, types.GroupedBouts])
        assert_type(client.ev("mma", min_ev=0.01, method="shin"), List[types.Value, types.Values])
        # A parameter that the operation does not have, and one with another type.
        client.scores("mma", market="moneyline")  # type: ignore[call-arg]
        client.best("mma", limit="many")  # type: ignore[arg-type]


def read(client: Linesman, page: Page[types.BestLine, types.BestLines]) -> None:
    """Checked, not called."""
    assert_type(client.status(), Result[types.ServiceStatus])
    # A set of values is open: any text is one of them.
    state: str = client.explain("mma", "evt_1").data["books"][0]["cells"][0]["state"]
    assert state != "something new"
    assert_type(page.items[0]["outcomes"][0]["price"], float | str)
    assert_type(page.meta.requests_used, int | None)
    for record in client.odds("mma"):
        assert_type(record["outcomes"][0]["point"], float | None)
        # A field that the answer does not have.
        record["price"]  # type: ignore[typeddict-item]


def follow(client: Linesman) -> None:
    """Checked, not called."""
    assert_type(client.scores("mma").since("A1"), Delta[types.ScoreRecord])
    with client.stream(sports=["mma"], channels="odds,scores", since="A1") as changes:
        for update in changes:
            assert_type(changes.state.odds["odd_1"], types.OddsRecord)
            for event in update.events:
                if event["event"] == "delta":
                    assert_type(event["data"], types.StreamDelta)
                elif event["event"] == "other":
                    assert_type(event["data"], str)
        # A parameter that the operation does not have.
        client.stream(limit=5)  # type: ignore[call-arg]


async def read_in_a_task(client: AsyncLinesman) -> Any:
    """Checked, not called."""
    assert_type(client.fair("mma"), AsyncList[types.FairLine, types.FairLines])
    assert_type((await client.event("mma", "evt_1")).data["home_team"], str | None)
    async for event in client.events("mma"):
        assert_type(event["status"], types.Status)
    async with client.stream(freshness="records") as changes:
        async for update in changes:
            assert_type(update.cut, types.StreamCut)
