"""Pushes the messages of a feed."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import TypeAlias

from ._error import LinesmanError
from ._http import (
    AsyncClock,
    AsyncClosing,
    AsyncTransport,
    Clock,
    Closing,
    Request,
    Response,
    Secret,
    Settings,
    Steps,
    Transport,
    exchange,
)
from .types import FeedMessage, PushReceipt, RejectedLine

Message: TypeAlias = FeedMessage | Mapping[str, object]

LINES_MAX = 5_000
BYTES_MAX = 4 * 1024 * 1024
# Maximum number of rejected lines in one receipt of the API.
REJECTED_MAX = 1_000
# Pushes may be repeated: messages that are already stored change nothing.
RETRIED = (503,)


class Batches:
    """Collects messages into bodies, and merges the receipts of the bodies."""

    def __init__(self) -> None:
        self.receipt: PushReceipt = {
            "accepted": 0,
            "unchanged": 0,
            "superseded": 0,
            "rejected_total": 0,
            "rejected": [],
        }
        self._lines: list[bytes] = []
        self._bytes = 0
        self._sent = 0

    def add(self, message: Message) -> Iterator[bytes]:
        """Adds a message; yields the previous body if it is full."""
        line = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        if len(self._lines) == LINES_MAX or self._bytes + len(line) > BYTES_MAX:
            yield from self.rest()
        if len(line) > BYTES_MAX:
            text = f"the message has {len(line)} bytes, at most {BYTES_MAX} can be sent"
            self._reject([{"line": 1, "code": "too_large", "message": text}], 1)
            self._sent += 1
            return
        self._lines.append(line)
        self._bytes += len(line)

    def rest(self) -> Iterator[bytes]:
        """Yields the body of the collected messages."""
        if self._lines:
            yield b"".join(self._lines)
            self._sent += len(self._lines)
        self._lines, self._bytes = [], 0

    def confirm(self, response: Response) -> None:
        """Adds the receipt of the last body."""
        receipt = response.parse()
        try:
            self.receipt["accepted"] += receipt["accepted"]
            self.receipt["unchanged"] += receipt["unchanged"]
            self.receipt["superseded"] += receipt["superseded"]
            self._reject(receipt["rejected"], receipt["rejected_total"])
        except (KeyError, TypeError):
            raise response.unexpected("is not a receipt") from None

    def _reject(self, lines: list[RejectedLine], total: int) -> None:
        self.receipt["rejected_total"] += total
        for line in lines[: REJECTED_MAX - len(self.receipt["rejected"])]:
            moved: RejectedLine = {**line, "line": line["line"] + self._sent}
            self.receipt["rejected"].append(moved)


def steps(settings: Settings, body: bytes, clock: Clock | AsyncClock) -> Steps[Response]:
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    request: Request = settings.request("POST", "/ingest/v1/messages", headers, gzip.compress(body, compresslevel=6))
    return exchange(request, retried=RETRIED, max_wait=settings.max_wait, random=clock.random)


class Feed(Closing):
    """Pushes the messages of a feed with its token (`linesman feeds create NAME`)."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        max_wait: float = 60.0,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        settings = Settings(url, Secret("Authorization", token, prefix="Bearer "), headers, max_wait)
        self._transport = Transport(settings, timeout, clock)

    def push(self, messages: Iterable[Message]) -> PushReceipt:
        """Sends messages in as many bodies as needed, one after the other; returns once all of them are stored.

        Line numbers in the receipt count the messages from 1. A rejected message does not stop the others: check
        `rejected_total`. An error contains the receipt of the bodies before it; sending everything again is safe.
        """
        batches = Batches()
        try:
            for message in messages:
                for body in batches.add(message):
                    batches.confirm(self._send(body))
            for body in batches.rest():
                batches.confirm(self._send(body))
        except LinesmanError as error:
            error.receipt = batches.receipt
            raise
        return batches.receipt

    def _send(self, body: bytes) -> Response:
        return self._transport.run(steps(self._transport.settings, body, self._transport.clock))


class AsyncFeed(AsyncClosing):
    """Pushes the messages of a feed, for tasks."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        max_wait: float = 60.0,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        clock: AsyncClock | None = None,
    ) -> None:
        settings = Settings(url, Secret("Authorization", token, prefix="Bearer "), headers, max_wait)
        self._transport = AsyncTransport(settings, timeout, clock)

    async def push(self, messages: Iterable[Message] | AsyncIterable[Message]) -> PushReceipt:
        """Sends messages as `Feed.push` does."""
        batches = Batches()
        try:
            async for message in _each(messages):
                for body in batches.add(message):
                    batches.confirm(await self._send(body))
            for body in batches.rest():
                batches.confirm(await self._send(body))
        except LinesmanError as error:
            error.receipt = batches.receipt
            raise
        return batches.receipt

    async def _send(self, body: bytes) -> Response:
        return await self._transport.run(steps(self._transport.settings, body, self._transport.clock))


async def _each(messages: Iterable[Message] | AsyncIterable[Message]) -> AsyncIterator[Message]:
    if isinstance(messages, AsyncIterable):
        async for message in messages:
            yield message
    else:
        for message in messages:
            yield message
