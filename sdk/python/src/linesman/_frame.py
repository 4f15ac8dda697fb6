"""Answers as rows of a table: a row is an outcome or a leg, with the surrounding fields repeated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas
    import polars

Row: TypeAlias = dict[str, Any]

# Every field of the API that is an instant. `from` and `to` of a middle are points: numbers are not converted.
TIMES = (
    "last_update",
    "commence_time",
    "updated_at",
    "generated_at",
    "server_time",
    "last_read",
    "since",
    "published_at",
    "at",
    "ts",
    "open.published_at",
    "close.published_at",
    "close.start",
    "close.last_update",
    "start",
    "from",
    "to",
)
# Lists of objects, which are rows or left out; other lists become one text.
OBJECTS = ("arbitrages", "books", "bouts", "cells", "legs", "lines", "middles", "outcomes", "points", "sources", "sports", "values")
# Odds have the columns and the order of `format=csv`; other rows have the order of the JSON.
ODDS: tuple[str, ...] = ("event_id", "sport_key", "bookmaker", "market", "format", "last_update", "id", "name", "point", "price")

# The rows of a record with an opening and a closing line: its outcomes, with the prices of both.
CLOSING = ("open", "close")


def page_rows(data: Any, items: list[Any], path: tuple[str, ...]) -> Iterator[Row]:
    """The rows of a page: its own fields, then those of its items."""
    # The body of some lists is the list itself.
    around = _fields(data) if isinstance(data, dict) else {}
    for item in items:
        yield from rows(item, path, around)


def rows(record: Any, path: tuple[str, ...], around: Row | None = None) -> Iterator[Row]:
    """The rows of a record; `path` names the lists that lead to them."""
    # A missing line, or one whose outcomes are the rows, adds no surrounding fields.
    is_around = {name: isinstance(value, dict) or name not in path for name, value in record.items()}
    fields = _fields({name: value for name, value in record.items() if is_around[name]})
    # `point` of a line is the home side's, `point` of its outcome is the outcome's own.
    both = {f"line.{name}" if name in fields else name: value for name, value in (around or {}).items()} | fields
    if path == CLOSING:
        yield from ({**both, **outcome} for outcome in _lines(record))
        return
    # Withdrawn prices are a row, too: it contains the reason.
    if not path or (path == ("outcomes",) and not record["outcomes"] and record.get("reason")):
        yield both
        return
    for inner in record[path[0]]:
        yield from rows(inner, path[1:], both)


def _fields(record: Row, prefix: str = "") -> Row:
    """The scalar fields; those of a nested object are prefixed with its name and a dot."""
    fields: Row = {}
    for name, value in record.items():
        if isinstance(value, dict):
            fields |= _fields(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            fields[prefix + name] = value
        elif name not in OBJECTS:
            fields[prefix + name] = ",".join(map(_text, value))
    return fields


def _lines(record: Row) -> Iterator[Row]:
    """The outcomes of an opening and a closing line, by name."""
    lines = {line: {one["name"]: one for one in (record[line] or {}).get("outcomes", [])} for line in CLOSING}
    for name in dict.fromkeys(name for outcomes in lines.values() for name in outcomes):
        row: Row = {"name": name}
        for line, outcomes in lines.items():
            row |= {f"{line}.{field}": outcomes.get(name, {}).get(field) for field in ("point", "price")}
        yield row


def _text(item: Any) -> str:
    """An item of a list that becomes one text; a period as `6-4`."""
    return f"{item.get('home_score')}-{item.get('away_score')}" if isinstance(item, dict) else str(item)


def _table(rows: Iterable[Row]) -> tuple[list[Row], list[str]]:
    """The rows and the columns of all of them."""
    kept = list(rows)
    columns = list(dict.fromkeys(name for row in kept for name in row))
    if set(ODDS) <= set(columns):
        columns = list(dict.fromkeys((*ODDS, *columns)))
    return kept, columns


def _is_time(rows: list[Row], name: str) -> bool:
    return name in TIMES and all(isinstance(row.get(name), str | None) for row in rows)


def to_pandas(rows: Iterable[Row]) -> pandas.DataFrame:
    import pandas

    kept, columns = _table(rows)
    frame = pandas.DataFrame(kept, columns=columns)
    for name in columns:
        if _is_time(kept, name):
            frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
    return frame


def to_polars(rows: Iterable[Row]) -> polars.DataFrame:
    import polars

    kept, columns = _table(rows)
    values = {name: polars.Series(name, [row.get(name) for row in kept], strict=False) for name in columns}
    for name in columns:
        if _is_time(kept, name):
            values[name] = values[name].cast(polars.String).str.to_datetime(time_unit="us", time_zone="UTC")
    return polars.DataFrame(values)
