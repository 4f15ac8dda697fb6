"""Streams: the events up to each cut, over connections that continue where they were.

Nothing here sends anything: `Follower.steps` is a generator that yields requests, reads and waits, and `Changes` and
`AsyncChanges` carry them out.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self, TypeAlias, TypeVar

import httpx2

from . import types as api
from ._error import BY_CODE, ConnectionFailed, LinesmanError
from ._http import (
    RETRIED,
    AsyncTransport,
    Request,
    Response,
    Settings,
    Transport,
    backoff,
    exchange,
    no_response,
)
from ._sse import Parser
from ._state import FIELDS, State, StreamEvent, Update, event_of, fold, unexpected

# Maximum size of the events between two cuts: far more than a whole sport.
PENDING_BYTES_MAX = 256 * 1024 * 1024
# Maximum number of consecutive lost connections without a cut before an error is raised.
LOST_MAX = 3
# The server's default, if the request does not set one.
HEARTBEAT_S = 15.0
# Codes after which a stream continues.
TEMPORARY = ("unavailable", "maintenance", "slow")


@dataclass(frozen=True)
class Read:
    """Reads the next piece of the open response; the answer has it as its body, empty at the end."""


Outcome = TypeVar("Outcome")
Steps: TypeAlias = Generator[Request | Read | float, Response | ConnectionFailed | None, Outcome]
"""Requests, reads and waits, each after the previous one is done."""


class Follower:
    """A stream without its connection: its position, and the next steps."""

    def __init__(self, settings: Settings, target: str, exact: bool) -> None:
        self.state = State()
        self.cursor: str | None = None
        self._settings = settings
        self._target = target
        self._exact = exact
        # Of the open connection.
        self._parser: Parser | None = None
        # Events after the last cut. They are sent again if the connection is lost.
        self._pending: list[StreamEvent] = []
        self._pending_bytes = 0
        self._lost = 0
        # Wait before the next connection.
        self._wait: float | None = None
        self._ended = False

    def __repr__(self) -> str:
        return f"{self._settings.url}{self._target}"

    def disconnect(self) -> None:
        """Discards the events after the last cut: they are sent again."""
        self._parser, self._pending, self._pending_bytes = None, [], 0

    def steps(self, random: Callable[[], float]) -> Steps[Update | None]:
        """Up to the next update; None at the end of the stream."""
        while not self._ended:
            if self._parser is None:
                self._parser = yield from self._connect(random)
                continue
            block = self._parser.next()
            if block is None:
                piece = yield Read()
                if isinstance(piece, Response) and piece.body:
                    self._parser.add(piece.body)
                else:
                    self._lose(piece, random)
            elif (update := self._take(*block)) is not None:
                return update
        return None

    def _connect(self, random: Callable[[], float]) -> Steps[Parser]:
        if self._wait is not None:
            yield self._wait
            self._wait = None
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity", "Cache-Control": "no-store"}
        if self.cursor is not None:
            headers["Last-Event-ID"] = self.cursor
        request = self._settings.request("GET", self._target, headers)
        max_wait = self._settings.max_wait
        response = yield from exchange(request, retried=RETRIED, max_wait=max_wait, random=random)
        if response.status == 204:
            # There was nothing to come after the last cut but the end.
            self._ended = True
        elif not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise response.unexpected("is no stream of events")
        return Parser()

    def _lose(self, error: Response | ConnectionFailed | None, random: Callable[[], float]) -> None:
        told = self._parser.retry if self._parser else None
        self._wait = (backoff(self._lost) if told is None else told) * (0.75 + random() / 2)
        if not isinstance(error, ConnectionFailed):
            error = ConnectionFailed("the stream ended without an event `end`", code="connection_failed")
        self._count_loss(error)

    def _count_loss(self, error: LinesmanError) -> None:
        self.disconnect()
        self._lost += 1
        if self._lost >= LOST_MAX:
            self._lost = 0
            raise error

    def _take(self, name: str, text: str) -> Update | None:
        self._pending_bytes += len(text)
        if self._pending_bytes > PENDING_BYTES_MAX:
            raise unexpected(f"a stream has more than {PENDING_BYTES_MAX} bytes without a cut")
        if name == "cut":
            return self._cut(self._parse(name, text, {"cursor": str, "at": str, "published": bool}))
        if name == "end":
            self._end(self._parse(name, text, {"code": str, "message": str, "retry_after_s": (int, Decimal)}))
        elif name in FIELDS:
            self._pending.append(event_of(name, self._parse(name, text, FIELDS[name])))
        else:
            self._pending.append({"event": "other", "name": name, "data": text})
        return None

    def _parse(self, name: str, text: str, fields: dict[str, Any]) -> Any:
        try:
            data = json.loads(text, parse_float=Decimal, parse_int=Decimal) if self._exact else json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict) or not all(isinstance(data.get(one), kind) for one, kind in fields.items()):
            raise unexpected(f"the event `{name}` of a stream cannot be read")
        return data

    def _cut(self, cut: api.StreamCut) -> Update:
        events = self._pending
        self._pending, self._pending_bytes, self._lost = [], 0, 0
        reset = None
        for event in events:
            fold(self.state, event)
            if event["event"] == "reset":
                reset = event["data"]["reason"]
        # Only values that a header can carry.
        self.cursor = cut["cursor"] if cut["cursor"].isascii() and cut["cursor"].isprintable() else None
        return Update(events, cut, reset)

    def _end(self, end: api.StreamEnd) -> None:
        code, wait = end["code"], float(end["retry_after_s"])
        error = BY_CODE.get(code, LinesmanError)(end["message"], code=code, retry_after=wait)
        if code == "done":
            self._ended = True
            return
        if code not in TEMPORARY:
            self._ended = True
            raise error
        # If the server asks for no wait, the client still backs off.
        self._wait = max(wait, backoff(self._lost))
        if wait > self._settings.max_wait:
            raise error
        self._count_loss(error)


class Followed:
    """The position of a stream, for both clients."""

    _follower: Follower

    @property
    def state(self) -> State:
        """The state of the stream as of the last update."""
        return self._follower.state

    @property
    def cursor(self) -> str | None:
        """The cursor of the last update: pass it as `since` of a later stream to continue from here."""
        return self._follower.cursor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._follower!r})"


class Changes(Followed):
    """The updates of a stream, for threads. It reconnects by itself and continues from the last cut, also if it is
    read again after an error or after `close()`."""

    def __init__(self, transport: Transport, follower: Follower, heartbeat: float) -> None:
        self._transport = transport
        self._follower = follower
        # A heartbeat may be late.
        self._silence_max = 2 * heartbeat + transport.timeout
        self._response: httpx2.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Update:
        steps, answer = self._follower.steps(self._transport.clock.random), None
        try:
            while True:
                answer = self._carry_out(steps.send(answer))
        except StopIteration as end:
            if end.value is not None:
                update: Update = end.value
                return update
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def _carry_out(self, step: Request | Read | float) -> Response | ConnectionFailed | None:
        if isinstance(step, Request):
            self._hang_up()
            opened = self._transport.open(step, self._silence_max)
            if isinstance(opened, httpx2.Response):
                self._response, self._pieces = opened, opened.iter_raw()
                return Response(opened.status_code, opened.headers, b"")
            return opened
        if isinstance(step, Read):
            try:
                return Response(200, httpx2.Headers(), next(self._pieces, b""))
            except httpx2.RequestError as error:
                return no_response(self._transport.settings.url, error)
        self._hang_up()
        self._transport.clock.sleep(step)
        return None

    def _hang_up(self) -> None:
        response, self._response, self._pieces = self._response, None, iter(())
        if response is not None:
            response.close()

    def close(self) -> None:
        """Closes the connection."""
        self._follower.disconnect()
        self._hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncChanges(Followed):
    """The updates of a stream, for tasks. It reconnects by itself and continues from the last cut, also if it is read
    again after an error, after a cancelled read, or after `close()`."""

    def __init__(self, transport: AsyncTransport, follower: Follower, heartbeat: float) -> None:
        self._transport = transport
        self._follower = follower
        # A heartbeat may be late.
        self._silence_max = 2 * heartbeat + transport.timeout
        self._response: httpx2.Response | None = None
        self._pieces: AsyncIterator[bytes] = nothing()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        steps, answer = self._follower.steps(self._transport.clock.random), None
        try:
            while True:
                try:
                    step = steps.send(answer)
                except StopIteration as end:
                    update: Update | None = end.value
                    break
                answer = await self._carry_out(step)
        except BaseException:
            await self.close()
            raise
        if update is None:
            await self.close()
            raise StopAsyncIteration
        return update

    async def _carry_out(self, step: Request | Read | float) -> Response | ConnectionFailed | None:
        if isinstance(step, Request):
            await self._hang_up()
            opened = await self._transport.open(step, self._silence_max)
            if isinstance(opened, httpx2.Response):
                self._response, self._pieces = opened, opened.aiter_raw()
                return Response(opened.status_code, opened.headers, b"")
            return opened
        if isinstance(step, Read):
            try:
                return Response(200, httpx2.Headers(), await anext(self._pieces, b""))
            except httpx2.RequestError as error:
                return no_response(self._transport.settings.url, error)
        await self._hang_up()
        await self._transport.clock.sleep(step)
        return None

    async def _hang_up(self) -> None:
        response, self._response, self._pieces = self._response, None, nothing()
        if response is not None:
            await response.aclose()

    async def close(self) -> None:
        """Closes the connection."""
        self._follower.disconnect()
        await self._hang_up()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def nothing() -> AsyncIterator[bytes]:
    """An empty iterator of pieces."""
    return
    yield b""
