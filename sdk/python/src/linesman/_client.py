"""The client of the API: one method for each operation."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypedDict, Unpack, overload
from urllib.parse import quote, urlencode

from . import types as api
from ._cache import Cache, Entry, entry_of
from ._http import (
    RETRIED,
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
from ._result import AsyncList, List, Meta, Page, Query, Result

URL = "http://127.0.0.1:8080"
STATUS = "/v1/status"
# More would be no count, and Python refuses to read thousands of digits.
DIGITS_MAX = 18


class OddsFilter(TypedDict, total=False):
    """The query parameters of `odds` but `group_by`, which decides what the items are."""

    market: str
    bookmaker: str
    regions: str | list[str]
    odds_format: Literal["american", "decimal", "fractional"] | str
    event_ids: str | list[str]
    as_of: str
    limit: int
    cursor: str


def query_of(params: Mapping[str, object]) -> str:
    """The query for parameters: lists joined by commas, without those that are None."""
    given = {name: _text(value) for name, value in params.items() if value is not None}
    return "?" + urlencode(given, quote_via=quote, safe=",") if given else ""


def _text(value: object) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(item) for item in value)
    if isinstance(value, float):
        # Python writes small numbers as 1e-05.
        return format(Decimal(repr(value)), "f")
    return str(value)


def path_of(sport_key: str, *rest: str) -> str:
    return "/".join(["/v1/sports", *(quote(part, safe="") for part in (sport_key, *rest))])


def next_query(response: Response, query: str) -> str | None:
    """The query of the next page. Only the query: the key goes to no other address, whatever `Link` says."""
    found = re.search(r"<[^<>?]*(\?[^<>#]*)?>\s*;\s*rel=\"?next\b", response.headers.get("link", ""), re.IGNORECASE)
    if not found:
        return None
    if found[1] is None or found[1] == query:
        raise response.unexpected("names itself as the next page")
    return found[1]


def page_of(response: Response, meta: Meta, data: Any, field: str, query: str) -> Page[Any, Any]:
    items = data.get(field) if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise response.unexpected("is not a list")
    return Page(items, data, meta, next_query(response, query))


def meta_of(response: Response, from_cache: bool) -> Meta:
    def count(name: str) -> int | None:
        text = response.headers.get(name, "")
        return int(text) if re.fullmatch(f"[0-9]{{1,{DIGITS_MAX}}}", text) else None

    return Meta(
        request_id=response.headers.get("x-request-id"),
        etag=response.headers.get("etag"),
        from_cache=from_cache,
        requests_remaining=count("x-requests-remaining"),
        requests_used=count("x-requests-used"),
    )


class Reader:
    """What the two clients share: requests through the cache."""

    def __init__(self, settings: Settings, cache: bool, exact: bool) -> None:
        self.settings = settings
        self.cache = Cache() if cache else None
        self.exact = exact

    def steps(self, target: str, clock: Clock | AsyncClock) -> Steps[tuple[Response, Meta, Any]]:
        """The exchange for a GET; gives the response, what it says about itself, and its body."""
        request = self.settings.request("GET", target, {"Accept": "application/json"})
        cache = self.cache if target != STATUS else None
        held = cache.get(request.url) if cache else None
        now = clock.now()
        if held and held.is_fresh(now):
            return held.response, meta_of(held.response, from_cache=True), held.response.parse(self.exact)
        response = yield from self._confirm(request, held, clock)
        unchanged = response.status == 304
        if unchanged and held is None:
            raise response.unexpected("answers a request without If-None-Match")
        entry = held.renewed(response, now) if unchanged and held else entry_of(response, now)
        if unchanged and entry:
            response = entry.response
        data = response.parse(self.exact)
        if cache and entry:
            cache.put(request.url, entry)
        return response, meta_of(response, from_cache=unchanged), data

    def _confirm(self, request: Request, held: Entry | None, clock: Clock | AsyncClock) -> Steps[Response]:
        if held and held.etag:
            request = Request("GET", request.url, {**request.headers, "If-None-Match": held.etag})
        return exchange(request, retried=RETRIED, max_wait=self.settings.max_wait, random=clock.random)


def reader_of(
    url: str | None, key: str | None, headers: Mapping[str, str] | None, max_wait: float, cache: bool, exact: bool
) -> Reader:
    url = url or os.environ.get("LINESMAN_URL") or URL
    secret = Secret("X-API-Key", key if key is not None else os.environ.get("LINESMAN_KEY", ""))
    return Reader(Settings(url, secret, headers, max_wait), cache, exact)


class Linesman(Closing):
    """A client of the API.

    `url` and `key` are those of `LINESMAN_URL` and `LINESMAN_KEY` unless given; the URL is `http://127.0.0.1:8080`
    unless set. `exact` reads numbers as `Decimal`. `cache=False` makes every call a request. `max_wait` is the longest
    wait before a retry, in seconds: where the server asks for more, the call fails at once. `timeout` is for each step
    of a request, in seconds. `headers` are added to every request, such as `X-Sandbox-Fault`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        exact: bool = False,
        cache: bool = True,
        max_wait: float = 60.0,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._reader = reader_of(url, key, headers, max_wait, cache, exact)
        self._transport = Transport(self._reader.settings, timeout, clock)

    def sports(self, **params: Unpack[api.ListSportsParams]) -> List[api.Sport, api.SportList]:
        """All sports."""
        return self._list("/v1/sports", "sports", params)

    def books(self, **params: Unpack[api.ListBooksParams]) -> List[api.Bookmaker, list[api.Bookmaker]]:
        """All bookmakers."""
        return self._list("/v1/books", "", params)

    def status(self) -> Result[api.ServiceStatus]:
        """How the service is, and the limits of the key. Never cached: it says how things are now."""
        return self._one(STATUS, {})

    def history(self) -> Result[api.HistoryReach]:
        """How far back `as_of` finds publications."""
        return self._one("/v1/history", {})

    @overload
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: Literal["bout"],
        **params: Unpack[OddsFilter],
    ) -> List[api.Bout, api.GroupedBouts]: ...
    @overload
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: None = None,
        **params: Unpack[OddsFilter],
    ) -> List[api.OddsRecord, list[api.OddsRecord]]: ...
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: Literal["bout"] | None = None,
        **params: Unpack[OddsFilter],
    ) -> List[Any, Any]:
        """The odds of a sport; with `group_by="bout"` a fight sport's moneyline, bout by bout."""
        path = ("outcomes",) if group_by is None else ("books", "outcomes")
        given = {**params, "group_by": group_by}
        return self._list(path_of(sport_key, "odds"), "bouts", given, max_items, path)

    def scores(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetScoresParams]
    ) -> List[api.ScoreRecord, list[api.ScoreRecord]]:
        """How events stand."""
        return self._list(path_of(sport_key, "scores"), "", params, max_items)

    def events(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListEventsParams]
    ) -> List[api.Event, list[api.Event]]:
        """The events of a sport."""
        return self._list(path_of(sport_key, "events"), "", params, max_items)

    def event(
        self, sport_key: str, event_id: str, **params: Unpack[api.GetEventParams]
    ) -> Result[api.Event]:
        """One event."""
        return self._one(path_of(sport_key, "events", event_id), params)

    def best(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetBestParams]
    ) -> List[api.BestLine, api.BestLines]:
        """The best price of every outcome, line by line."""
        return self._list(path_of(sport_key, "best"), "lines", params, max_items, ("outcomes",))

    def fair(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetFairParams]
    ) -> List[api.FairLine, api.FairLines]:
        """Prices without the bookmakers' margins, line by line."""
        return self._list(path_of(sport_key, "fair"), "lines", params, max_items, ("outcomes",))

    def arbitrage(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListArbitragesParams]
    ) -> List[api.Arbitrage, api.Arbitrages]:
        """Lines whose best prices leave a profit on every outcome."""
        return self._list(path_of(sport_key, "arbitrage"), "arbitrages", params, max_items, ("legs",))

    def ev(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListEvParams]
    ) -> List[api.Value, api.Values]:
        """Prices above the fair ones."""
        return self._list(path_of(sport_key, "ev"), "values", params, max_items)

    def middles(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListMiddlesParams]
    ) -> List[api.Middle, api.Middles]:
        """Pairs of prices that can both win."""
        return self._list(path_of(sport_key, "middles"), "middles", params, max_items, ("legs",))

    def coverage(self, sport_key: str, **params: Unpack[api.GetCoverageParams]) -> Result[api.Coverage]:
        """How many prices of a sport are there, and why the others are not."""
        return self._one(path_of(sport_key, "coverage"), params, ("books", "markets"))

    def explain(
        self, sport_key: str, event_id: str, **params: Unpack[api.ExplainEventParams]
    ) -> Result[api.Explanation]:
        """Why each price of an event is there or missing."""
        return self._one(path_of(sport_key, "events", event_id, "explain"), params, ("books", "cells"))

    def _list(
        self,
        target: str,
        field: str,
        params: Mapping[str, object],
        max_items: int | None = None,
        path: tuple[str, ...] = (),
    ) -> List[Any, Any]:
        def fetch(query: str) -> Page[Any, Any]:
            response, meta, data = self._get(target + query)
            return page_of(response, meta, data, field, query)

        return List(fetch, Query(query_of(params), max_items, path))

    def _one(self, target: str, params: Mapping[str, object], path: tuple[str, ...] = ()) -> Result[Any]:
        response, meta, data = self._get(target + query_of(params))
        if not isinstance(data, dict):
            raise response.unexpected("is not an object")
        return Result(data, meta, path)

    def _get(self, target: str) -> tuple[Response, Meta, Any]:
        return self._transport.run(self._reader.steps(target, self._transport.clock))


class AsyncLinesman(AsyncClosing):
    """A client of the API for tasks.

    `url` and `key` are those of `LINESMAN_URL` and `LINESMAN_KEY` unless given; the URL is `http://127.0.0.1:8080`
    unless set. `exact` reads numbers as `Decimal`. `cache=False` makes every call a request. `max_wait` is the longest
    wait before a retry, in seconds: where the server asks for more, the call fails at once. `timeout` is for each step
    of a request, in seconds. `headers` are added to every request, such as `X-Sandbox-Fault`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        exact: bool = False,
        cache: bool = True,
        max_wait: float = 60.0,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        clock: AsyncClock | None = None,
    ) -> None:
        self._reader = reader_of(url, key, headers, max_wait, cache, exact)
        self._transport = AsyncTransport(self._reader.settings, timeout, clock)

    def sports(self, **params: Unpack[api.ListSportsParams]) -> AsyncList[api.Sport, api.SportList]:
        """All sports."""
        return self._list("/v1/sports", "sports", params)

    def books(self, **params: Unpack[api.ListBooksParams]) -> AsyncList[api.Bookmaker, list[api.Bookmaker]]:
        """All bookmakers."""
        return self._list("/v1/books", "", params)

    async def status(self) -> Result[api.ServiceStatus]:
        """How the service is, and the limits of the key. Never cached: it says how things are now."""
        return await self._one(STATUS, {})

    async def history(self) -> Result[api.HistoryReach]:
        """How far back `as_of` finds publications."""
        return await self._one("/v1/history", {})

    @overload
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: Literal["bout"],
        **params: Unpack[OddsFilter],
    ) -> AsyncList[api.Bout, api.GroupedBouts]: ...
    @overload
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: None = None,
        **params: Unpack[OddsFilter],
    ) -> AsyncList[api.OddsRecord, list[api.OddsRecord]]: ...
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: Literal["bout"] | None = None,
        **params: Unpack[OddsFilter],
    ) -> AsyncList[Any, Any]:
        """The odds of a sport; with `group_by="bout"` a fight sport's moneyline, bout by bout."""
        path = ("outcomes",) if group_by is None else ("books", "outcomes")
        given = {**params, "group_by": group_by}
        return self._list(path_of(sport_key, "odds"), "bouts", given, max_items, path)

    def scores(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetScoresParams]
    ) -> AsyncList[api.ScoreRecord, list[api.ScoreRecord]]:
        """How events stand."""
        return self._list(path_of(sport_key, "scores"), "", params, max_items)

    def events(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListEventsParams]
    ) -> AsyncList[api.Event, list[api.Event]]:
        """The events of a sport."""
        return self._list(path_of(sport_key, "events"), "", params, max_items)

    async def event(
        self, sport_key: str, event_id: str, **params: Unpack[api.GetEventParams]
    ) -> Result[api.Event]:
        """One event."""
        return await self._one(path_of(sport_key, "events", event_id), params)

    def best(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetBestParams]
    ) -> AsyncList[api.BestLine, api.BestLines]:
        """The best price of every outcome, line by line."""
        return self._list(path_of(sport_key, "best"), "lines", params, max_items, ("outcomes",))

    def fair(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetFairParams]
    ) -> AsyncList[api.FairLine, api.FairLines]:
        """Prices without the bookmakers' margins, line by line."""
        return self._list(path_of(sport_key, "fair"), "lines", params, max_items, ("outcomes",))

    def arbitrage(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListArbitragesParams]
    ) -> AsyncList[api.Arbitrage, api.Arbitrages]:
        """Lines whose best prices leave a profit on every outcome."""
        return self._list(path_of(sport_key, "arbitrage"), "arbitrages", params, max_items, ("legs",))

    def ev(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListEvParams]
    ) -> AsyncList[api.Value, api.Values]:
        """Prices above the fair ones."""
        return self._list(path_of(sport_key, "ev"), "values", params, max_items)

    def middles(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListMiddlesParams]
    ) -> AsyncList[api.Middle, api.Middles]:
        """Pairs of prices that can both win."""
        return self._list(path_of(sport_key, "middles"), "middles", params, max_items, ("legs",))

    async def coverage(self, sport_key: str, **params: Unpack[api.GetCoverageParams]) -> Result[api.Coverage]:
        """How many prices of a sport are there, and why the others are not."""
        return await self._one(path_of(sport_key, "coverage"), params, ("books", "markets"))

    async def explain(
        self, sport_key: str, event_id: str, **params: Unpack[api.ExplainEventParams]
    ) -> Result[api.Explanation]:
        """Why each price of an event is there or missing."""
        return await self._one(path_of(sport_key, "events", event_id, "explain"), params, ("books", "cells"))

    def _list(
        self,
        target: str,
        field: str,
        params: Mapping[str, object],
        max_items: int | None = None,
        path: tuple[str, ...] = (),
    ) -> AsyncList[Any, Any]:
        async def fetch(query: str) -> Page[Any, Any]:
            response, meta, data = await self._get(target + query)
            return page_of(response, meta, data, field, query)

        return AsyncList(fetch, Query(query_of(params), max_items, path))

    async def _one(self, target: str, params: Mapping[str, object], path: tuple[str, ...] = ()) -> Result[Any]:
        response, meta, data = await self._get(target + query_of(params))
        if not isinstance(data, dict):
            raise response.unexpected("is not an object")
        return Result(data, meta, path)

    async def _get(self, target: str) -> tuple[Response, Meta, Any]:
        return await self._transport.run(self._reader.steps(target, self._transport.clock))
