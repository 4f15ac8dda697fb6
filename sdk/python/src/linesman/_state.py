"""The contents of streams: events, and the resulting state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypedDict

from . import types as api
from ._error import LinesmanError

# The field that is the key of a record.
ID_OF = {"odds": "id", "scores": "event_id", "events": "id"}
# The required fields of each event that are used here.
FIELDS: dict[str, dict[str, type]] = {
    "hello": {"resumed": bool},
    "snapshot": {"channel": str, "records": list},
    "delta": {"channel": str, "upserts": list, "removed": list},
    "fresh": {},
    "reset": {"reason": str},
}


class HelloEvent(TypedDict):
    event: Literal["hello"]
    data: api.StreamHello


class SnapshotEvent(TypedDict):
    event: Literal["snapshot"]
    data: api.StreamSnapshot


class DeltaEvent(TypedDict):
    event: Literal["delta"]
    data: api.StreamDelta


class FreshEvent(TypedDict):
    event: Literal["fresh"]
    data: api.StreamFresh


class ResetEvent(TypedDict):
    event: Literal["reset"]
    data: api.StreamReset


class OtherEvent(TypedDict):
    """An event that this version of the client does not know, with its data as text."""

    event: Literal["other"]
    name: str
    data: str


StreamEvent: TypeAlias = HelloEvent | SnapshotEvent | DeltaEvent | FreshEvent | ResetEvent | OtherEvent
"""An event of a stream, in the form of a WebSocket message: `{"event": "delta", "data": {…}}`."""


@dataclass
class State:
    """The state of a stream: after each update it equals the lists of the same selection, except for
    `last_update`; with `freshness="records"` including it."""

    odds: dict[str, api.OddsRecord] = field(default_factory=lambda: {})
    """By the record's id."""
    scores: dict[str, api.ScoreRecord] = field(default_factory=lambda: {})
    """By the event's id."""
    events: dict[str, api.Event] = field(default_factory=lambda: {})
    """By the event's id."""


@dataclass(frozen=True)
class Update:
    """The events up to a cut, which belong together."""

    events: list[StreamEvent]
    """The events since the previous cut."""
    cut: api.StreamCut
    """The new position of the stream."""
    reset: str | None = None
    """Why the server could not continue from the last cursor: the old state is discarded, this update is complete."""


def unexpected(message: str) -> LinesmanError:
    """The error for data that the API does not send."""
    return LinesmanError(message, code="unexpected_response")


def event_of(name: str, data: dict[str, Any]) -> StreamEvent:
    """An event that can be folded completely: all fields that are used are present."""
    if name in ("snapshot", "delta"):
        channel, put, removed = changes_in(name, data)
        ids = [(one, ID_OF.get(channel, "")) for one in put] + [(one, "id") for one in removed]
        if channel in ID_OF and not all(isinstance(one, dict) and isinstance(one.get(key), str) for one, key in ids):
            raise unexpected(f"a record in the event `{name}` of a stream has no id")
    touched = data.get("touched", {})
    if name == "fresh" and not (isinstance(touched, dict) and all(is_texts(ids) for ids in touched.values())):
        raise unexpected("`touched` in a stream cannot be read")
    event: Any = {"event": name, "data": data}
    read: StreamEvent = event
    return read


def is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def changes_in(name: str, data: Any) -> tuple[str, list[Any], list[Any]]:
    """The channel of a snapshot or a delta, the records to put and those to remove."""
    if name == "snapshot":
        return data["channel"], data["records"], []
    return data["channel"], data["upserts"], data["removed"]


def fold(state: State, event: StreamEvent) -> None:
    """Stores records by id and deletes removed ones."""
    if event["event"] == "reset" or (event["event"] == "hello" and not event["data"]["resumed"]):
        for records in (state.odds, state.scores, state.events):
            records.clear()
    elif event["event"] == "snapshot" or event["event"] == "delta":
        channel, put, removed = changes_in(event["event"], event["data"])
        if channel not in ID_OF:
            return  # Unknown events are left to the caller.
        known: dict[str, Any] = getattr(state, channel)
        known.update({record[ID_OF[channel]]: record for record in put})
        for gone in removed:
            known.pop(gone["id"], None)
    elif event["event"] == "fresh":
        for last_update, ids in event["data"].get("touched", {}).items():
            for one in ids:
                if (record := state.odds.get(one)) is not None:
                    # The record in its event is not changed.
                    state.odds[one] = {**record, "last_update": last_update}
