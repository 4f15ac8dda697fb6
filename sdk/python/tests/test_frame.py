"""Answers as rows, and numbers as `Decimal`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pandas
import polars
import pytest
from support import DOCUMENT, Clients

from linesman import _frame

ODDS = "event_id,sport_key,bookmaker,market,format,last_update,id,name,point,price"


def instants(schema: dict[str, Any]) -> set[str]:
    """The column names of an object's instants; those of a nested object are prefixed with its name."""
    found = set()
    for name, field in schema.get("properties", {}).items():
        for one in [field, *field.get("oneOf", []), *field.get("anyOf", [])]:
            referred = one.get("$ref", "").rpartition("/")[2]
            if referred.startswith("Timestamp"):
                found.add(name)
            elif referred:
                found |= {f"{name}.{inner}" for inner in instants(DOCUMENT["components"]["schemas"][referred])}
    return found


def test_every_instant_of_the_api_is_read_as_a_time() -> None:
    schemas = DOCUMENT["components"]["schemas"].values()
    assert set().union(*map(instants, schemas)) == set(_frame.TIMES)


def test_odds_have_the_columns_of_csv(clients: Clients) -> None:
    odds = clients.linesman().odds("mma", market="moneyline", limit=10, max_items=25)
    records, frames = list(odds), [odds.to_pandas(), odds.to_polars()]
    outcomes = [outcome["name"] for record in records for outcome in record["outcomes"]]
    for frame in frames:
        assert ",".join(frame.columns) == ODDS
        assert list(frame["name"]) == outcomes and len(outcomes) > 25
    in_pandas, in_polars = frames
    assert isinstance(in_pandas["last_update"].dtype, pandas.DatetimeTZDtype)
    assert str(in_pandas["last_update"].dt.tz) == "UTC"
    assert in_polars["last_update"].dtype == polars.Datetime("us", "UTC")
    assert in_polars["last_update"].to_list() == [time.to_pydatetime() for time in in_pandas["last_update"]]


@pytest.mark.parametrize(
    ("method", "columns"),
    [
        ("fair", ["sport", "generated_at", "refused.thin", "line.point", "point", "probability"]),
        ("arbitrage", ["line.stake", "stake", "bookmaker", "price"]),
        ("events", ["id", "commence_time", "markets"]),
        ("scores", ["event_id", "home_score", "periods"]),
        ("coverage", ["bookmaker", "market", "priced", "no_source"]),
        ("closing", ["open.published_at", "close.start", "close.by", "name", "open.price", "close.price"]),
    ],
)
def test_fields_around_an_outcome_are_repeated(clients: Clients, method: str, columns: list[str]) -> None:
    # The one sport of the sandbox that always has an arbitrage.
    sport = "american_football" if method == "arbitrage" else "boxing"
    # The list of everything that has started has many pages.
    few = {"limit": 20, "max_items": 20} if method == "closing" else {}
    answer = getattr(clients.linesman(), method)(sport, **few)
    in_pandas, in_polars = answer.to_pandas(), answer.to_polars()
    assert list(in_pandas.columns) == in_polars.columns
    assert len(in_pandas) == in_polars.height > 0
    assert set(columns) <= set(in_polars.columns)


def test_rows_of_a_record() -> None:
    line = {
        "point": -3.5,
        "outcomes": [{"name": "A", "point": -3.5, "also": ["x", "y"]}, {"name": "B", "point": 3.5, "also": []}],
        "sources": [{"bookmaker": "x"}],
    }
    data: Any = {"sport": "mma", "refused": {"stale": 1}, "lines": [line]}
    around = {"sport": "mma", "refused.stale": 1, "line.point": -3.5}
    assert list(_frame.page_rows(data, [line], ("outcomes",))) == [
        {**around, "name": "A", "point": -3.5, "also": "x,y"},
        {**around, "name": "B", "point": 3.5, "also": ""},
    ]
    score = {"home_score": 2, "periods": [{"number": 1, "home_score": 6, "away_score": 4}]}
    assert list(_frame.rows(score, ())) == [{"home_score": 2, "periods": "6-4"}]
    assert list(_frame.rows({"outcomes": []}, ("outcomes",))) == []


def test_rows_of_what_became_of_prices() -> None:
    line: Any = {"exact": True, "outcomes": [{"name": "A", "price": 150, "point": -3.5}, {"name": "B", "price": -170, "point": 3.5}]}
    close: Any = {"by": "live", "outcomes": [{"name": "A", "price": 140, "point": -4.5}]}
    around = {"id": "odd_1", "open.exact": True, "close.by": "live"}
    assert list(_frame.rows({"id": "odd_1", "open": line, "close": close}, _frame.CLOSING)) == [
        {**around, "name": "A", "open.point": -3.5, "open.price": 150, "close.point": -4.5, "close.price": 140},
        {**around, "name": "B", "open.point": 3.5, "open.price": -170, "close.point": None, "close.price": None},
    ]
    started: Any = {"id": "odd_1", "open": line, "close": None}
    assert [row["close.price"] for row in _frame.rows(started, _frame.CLOSING)] == [None, None]
    points: Any = {"id": "odd_1", "points": [
        {"ts": "t1", "reason": None, "outcomes": [{"name": "A", "price": 150}]},
        {"ts": "t2", "reason": "no_prices", "outcomes": []},
    ]}
    assert list(_frame.rows(points, ("points", "outcomes"))) == [
        {"id": "odd_1", "ts": "t1", "reason": None, "name": "A", "price": 150},
        {"id": "odd_1", "ts": "t2", "reason": "no_prices"},
    ]


def test_a_number_is_no_time() -> None:
    # `from` and `to` of a middle are points.
    rows: list[_frame.Row] = [{"from": 42.5, "to": 44, "last_update": "2026-11-14T20:00:00Z"}]
    in_pandas, in_polars = _frame.to_pandas(rows), _frame.to_polars(rows)
    assert list(in_pandas["from"]) == in_polars["from"].to_list() == [42.5]
    assert in_polars["to"].to_list() == [44] and in_polars["last_update"].dtype == polars.Datetime("us", "UTC")


def test_an_empty_answer_is_an_empty_frame(clients: Clients) -> None:
    none = clients.linesman().odds("mma", event_ids=["evt_none"])
    assert len(none.to_pandas()) == 0 and none.to_polars().height == 0


def test_exact_numbers_are_decimals(clients: Clients) -> None:
    client = clients.linesman(exact=True)
    fair = client.fair("mma", market="moneyline", odds_format="decimal", limit=5, max_items=5)
    for outcome in [outcome for line in fair for outcome in line["outcomes"]]:
        assert type(outcome["probability"]) is type(outcome["price"]) is Decimal
    assert client.odds("mma", odds_format="decimal", max_items=20).to_polars()["price"].dtype == polars.Decimal(38, 3)
    prices = client.odds("mma", odds_format="decimal", max_items=20).to_pandas()["price"]
    assert all(type(price) is Decimal for price in prices)
    fractional = next(iter(client.odds("mma", odds_format="fractional")))["outcomes"][0]["price"]
    assert type(fractional) is str
