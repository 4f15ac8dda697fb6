"""Shared parts of the tests: proxies, a clock that does not wait, and both clients behind one interface."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linesman import AsyncClock, AsyncFeed, AsyncLinesman, Clock, Feed, Linesman

REPOSITORY = Path(__file__).resolve().parents[3]
KEY = os.environ.get("LINESMAN_KEY", "")
DOCUMENT: dict[str, Any] = json.loads((REPOSITORY / "openapi.json").read_text())


@dataclass
class Proxy:
    """A proxy in front of the program, created by sdk/testing/proxy.py."""

    url: str
    _requests: str

    @classmethod
    def make(cls, **wanted: Any) -> Proxy:
        made = _call(os.environ["LINESMAN_TEST_PROXY"] + "/proxies", json.dumps(wanted).encode())
        return cls(made["url"], made["requests"])

    def requests(self) -> list[dict[str, Any]]:
        """The requests seen so far."""
        seen: list[dict[str, Any]] = _call(self._requests)
        return seen


def _call(url: str, body: bytes | None = None) -> Any:
    with urllib.request.urlopen(url, body, timeout=30) as response:
        return json.load(response)


@dataclass
class FakeClock:
    """A clock that advances when the client waits or the test moves it."""

    chance: float = 0.5
    time: float = 1000.0
    waits: list[float] = field(default_factory=lambda: [])

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)

    def random(self) -> float:
        return self.chance

    def clock(self) -> Clock:
        return Clock(self.now, self.sleep, self.random)

    def async_clock(self) -> AsyncClock:
        return AsyncClock(self.now, self.asleep, self.random)


class Blocking:
    """A client for tasks, used like the one for threads."""

    def __init__(self, runner: asyncio.Runner, inner: Any) -> None:
        self._runner = runner
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            if inspect.iscoroutine(made):
                return self._runner.run(made)
            return Blocking(self._runner, made)

        return call

    def __iter__(self) -> Iterator[Any]:
        iterator = aiter(self._inner)
        while True:
            try:
                yield self._runner.run(_next(iterator))
            except StopAsyncIteration:
                return

    def __repr__(self) -> str:
        return repr(self._inner)


async def _next(iterator: Any) -> Any:
    return await anext(iterator)


class Clients:
    """Makes clients of one kind, and closes them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._runner = asyncio.Runner()
        self._made: list[Any] = []

    def linesman(self, *args: Any, clock: FakeClock | None = None, **kwargs: Any) -> Any:
        clock = clock or FakeClock()
        if self.kind == "threads":
            return self._keep(Linesman(*args, clock=clock.clock(), **kwargs))
        return self._keep(AsyncLinesman(*args, clock=clock.async_clock(), **kwargs))

    def feed(self, *args: Any, clock: FakeClock | None = None, **kwargs: Any) -> Any:
        clock = clock or FakeClock()
        if self.kind == "threads":
            return self._keep(Feed(*args, clock=clock.clock(), **kwargs))
        return self._keep(AsyncFeed(*args, clock=clock.async_clock(), **kwargs))

    def _keep(self, client: Any) -> Any:
        kept = client if self.kind == "threads" else Blocking(self._runner, client)
        self._made.append(kept)
        return kept

    def close(self) -> None:
        for client in self._made:
            client.close()
        self._runner.close()


def pages(listed: Any) -> list[Any]:
    return list(listed.pages())
