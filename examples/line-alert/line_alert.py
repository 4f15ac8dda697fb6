"""Prints lines that move: python3 line_alert.py mma soccer

Needs the client: pip install linesman-client. The server is LINESMAN_URL, the key is in LINESMAN_KEY. A line moves when
its point changes, or when the implied probability of its price changes by MOVE (0.02) since it was last printed.
SINCE and UNTIL, instants in UTC such as 2026-11-14T20:00:00Z, show the past instead. The stream continues by itself
after a lost connection; interrupt the program to end it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from linesman import Linesman, LinesmanError, Update, types

MOVE = float(os.environ.get("MOVE", "0.02"))

Quote = tuple[float, float | None]
"""A price and its point."""


def probability(price: float) -> float:
    """The implied probability of an American price, including the bookmaker's margin."""
    return 100 / (price + 100) if price > 0 else price / (price - 100)


def quotes(record: types.OddsRecord) -> Iterator[tuple[str, Quote]]:
    for outcome in record["outcomes"]:
        yield f"{record['id']} {outcome['name']}", (float(outcome["price"]), outcome["point"])


def records(update: Update) -> Iterator[types.OddsRecord]:
    """The odds records in an update."""
    for event in update.events:
        if event["event"] == "snapshot" or event["event"] == "delta":
            data = event["data"]
            if data["channel"] == "odds":
                yield from data["records"] if "records" in data else data["upserts"]  # type: ignore[misc]


def has_moved(before: Quote, now: Quote) -> bool:
    return before[1] != now[1] or abs(probability(before[0]) - probability(now[0])) >= MOVE


def shown(quote: Quote) -> str:
    price, point = quote
    return f"{price:+g}" if point is None else f"{point:+g} at {price:+g}"


def title(event: types.Event | None) -> str:
    if event is None:
        return "an event that is over"
    return event.get("title") or f"{event['home_team']} – {event['away_team']}"


def main(sports: list[str]) -> None:
    # The names are in the events.
    selection: Any = {"sports": sports, "channels": ["odds", "events"], "odds_format": "american"}
    selection |= {name.lower(): os.environ.get(name) for name in ("SINCE", "UNTIL")}
    last: dict[str, Quote] = {}
    with Linesman() as client, client.stream(**selection) as changes:
        for update in changes:
            for record in records(update):
                for name, now in quotes(record):
                    before = last.setdefault(name, now)
                    if has_moved(before, now):
                        last[name] = now
                        where = f"{title(changes.state.events.get(record['event_id']))}, {record['market']}"
                        who = f"{record['bookmaker']}: {name.partition(' ')[2]}"
                        print(f"{update.cut['at']} {where}, {who} {shown(before)} → {shown(now)}", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:] or ["mma"])
    except (KeyboardInterrupt, LinesmanError) as error:
        sys.exit(str(error) or "interrupted")
