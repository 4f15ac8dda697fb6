"""The client of the API: one method for each operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO, Literal, TypedDict, Unpack, overload

from . import types as api
from ._export import Export, download, download_async
from ._frame import CLOSING
from ._http import AsyncClock, AsyncClosing, AsyncTransport, Clock, Closing, Response, Transport
from ._reader import STATUS, page_of, path_of, query_of, reader_of
from ._result import AsyncList, AsyncRecordList, Delta, List, Meta, Page, Query, RecordList, Result
from ._stream import HEARTBEAT_S, AsyncChanges, Changes


class OddsFilter(TypedDict, total=False):
    """The query parameters of `odds` except `group_by`, which decides the type of the items."""

    market: str
    bookmaker: str
    regions: str | list[str]
    odds_format: Literal["american", "decimal", "fractional"] | str
    event_ids: str | list[str]
    as_of: str
    limit: int
    cursor: str


class Linesman(Closing):
    """A client of the API.

    `url` and `key` are those of `LINESMAN_URL` and `LINESMAN_KEY` unless given; the URL is `http://127.0.0.1:8080`
    unless set. `exact` reads numbers as `Decimal`. `cache=False` makes every call a request. `max_wait` is the maximum
    wait before a retry, in seconds: if the server asks for more, the call fails at once. `timeout` is for each step
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
        """The state of the service, and the limits of the key. Never cached."""
        return self._one(STATUS, {})

    def history(self) -> Result[api.HistoryReach]:
        """The time range for which `as_of` finds publications."""
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
    ) -> RecordList[api.OddsRecord, list[api.OddsRecord]]: ...
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: Literal["bout"] | None = None,
        **params: Unpack[OddsFilter],
    ) -> List[Any, Any]:
        """The odds of a sport; with `group_by="bout"` a fight sport's moneyline, bout by bout."""
        target = path_of(sport_key, "odds")
        if group_by is None:
            return self._records(target, params, max_items, ("outcomes",))
        return self._list(target, "bouts", {**params, "group_by": group_by}, max_items, ("books", "outcomes"))

    def scores(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetScoresParams]
    ) -> RecordList[api.ScoreRecord, list[api.ScoreRecord]]:
        """The state of events."""
        return self._records(path_of(sport_key, "scores"), params, max_items)

    def events(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListEventsParams]
    ) -> RecordList[api.Event, list[api.Event]]:
        """The events of a sport."""
        return self._records(path_of(sport_key, "events"), params, max_items)

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
        """The number of prices of a sport, and the reasons for missing ones."""
        return self._one(path_of(sport_key, "coverage"), params, ("books", "markets"))

    def explain(
        self, sport_key: str, event_id: str, **params: Unpack[api.ExplainEventParams]
    ) -> Result[api.Explanation]:
        """Why each price of an event is present or missing."""
        return self._one(path_of(sport_key, "events", event_id, "explain"), params, ("books", "cells"))

    def closing(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetClosingParams]
    ) -> List[api.ClosingRecord, list[api.ClosingRecord]]:
        """The closing lines of events that have started."""
        return self._list(path_of(sport_key, "odds", "closing"), "", params, max_items, CLOSING)

    def price_path(
        self,
        sport_key: str,
        event_id: str,
        *,
        max_items: int | None = None,
        from_: str | None = None,
        **params: Unpack[api.GetPricePathParams],
    ) -> List[api.PricePath, list[api.PricePath]]:
        """The price history of an event: opening lines, closing lines, and every change.

        `from_` is the parameter `from`, which is a keyword of Python.
        """
        target = path_of(sport_key, "events", event_id, "odds", "history")
        filters = params if from_ is None else {**params, "from": from_}
        return self._list(target, "", filters, max_items, ("points", "outcomes"))

    def export(
        self, sport_key: str, table: str, date: str, to: BinaryIO, **params: Unpack[api.GetExportParams]
    ) -> Export:
        """Writes the archive's file of a table and a day (UTC) to a binary file.

        It requires a key with `export:read`. Bytes written before a lost connection remain.
        """
        target = path_of(sport_key, "export", table, date) + query_of(params)
        steps = self._reader.file_steps(target, self._transport.clock)
        return download(self._transport, steps, self._reader.settings.url, to)

    def stream(self, **params: Unpack[api.GetStreamParams]) -> Changes:
        """Changes as they are published, and the resulting state. It connects when it is read."""
        return Changes(self._transport, self._reader.follower(params), params.get("heartbeat", HEARTBEAT_S))

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

    def _records(
        self, target: str, params: Mapping[str, object], max_items: int | None, path: tuple[str, ...] = ()
    ) -> RecordList[Any, Any]:
        def fetch(query: str) -> Page[Any, Any]:
            response, meta, data = self._get(target + query)
            return page_of(response, meta, data, "", query)

        def since(cursor: str) -> Delta[Any]:
            return self._transport.run(self._reader.delta_steps(target, params, cursor, self._transport.clock))

        return RecordList(fetch, Query(query_of(params), max_items, path), since)

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
    unless set. `exact` reads numbers as `Decimal`. `cache=False` makes every call a request. `max_wait` is the maximum
    wait before a retry, in seconds: if the server asks for more, the call fails at once. `timeout` is for each step
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
        """The state of the service, and the limits of the key. Never cached."""
        return await self._one(STATUS, {})

    async def history(self) -> Result[api.HistoryReach]:
        """The time range for which `as_of` finds publications."""
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
    ) -> AsyncRecordList[api.OddsRecord, list[api.OddsRecord]]: ...
    def odds(
        self,
        sport_key: str,
        *,
        max_items: int | None = None,
        group_by: Literal["bout"] | None = None,
        **params: Unpack[OddsFilter],
    ) -> AsyncList[Any, Any]:
        """The odds of a sport; with `group_by="bout"` a fight sport's moneyline, bout by bout."""
        target = path_of(sport_key, "odds")
        if group_by is None:
            return self._records(target, params, max_items, ("outcomes",))
        return self._list(target, "bouts", {**params, "group_by": group_by}, max_items, ("books", "outcomes"))

    def scores(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetScoresParams]
    ) -> AsyncRecordList[api.ScoreRecord, list[api.ScoreRecord]]:
        """The state of events."""
        return self._records(path_of(sport_key, "scores"), params, max_items)

    def events(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.ListEventsParams]
    ) -> AsyncRecordList[api.Event, list[api.Event]]:
        """The events of a sport."""
        return self._records(path_of(sport_key, "events"), params, max_items)

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
        """The number of prices of a sport, and the reasons for missing ones."""
        return await self._one(path_of(sport_key, "coverage"), params, ("books", "markets"))

    async def explain(
        self, sport_key: str, event_id: str, **params: Unpack[api.ExplainEventParams]
    ) -> Result[api.Explanation]:
        """Why each price of an event is present or missing."""
        return await self._one(path_of(sport_key, "events", event_id, "explain"), params, ("books", "cells"))

    def closing(
        self, sport_key: str, *, max_items: int | None = None, **params: Unpack[api.GetClosingParams]
    ) -> AsyncList[api.ClosingRecord, list[api.ClosingRecord]]:
        """The closing lines of events that have started."""
        return self._list(path_of(sport_key, "odds", "closing"), "", params, max_items, CLOSING)

    def price_path(
        self,
        sport_key: str,
        event_id: str,
        *,
        max_items: int | None = None,
        from_: str | None = None,
        **params: Unpack[api.GetPricePathParams],
    ) -> AsyncList[api.PricePath, list[api.PricePath]]:
        """The price history of an event: opening lines, closing lines, and every change.

        `from_` is the parameter `from`, which is a keyword of Python.
        """
        target = path_of(sport_key, "events", event_id, "odds", "history")
        filters = params if from_ is None else {**params, "from": from_}
        return self._list(target, "", filters, max_items, ("points", "outcomes"))

    async def export(
        self, sport_key: str, table: str, date: str, to: BinaryIO, **params: Unpack[api.GetExportParams]
    ) -> Export:
        """Writes the archive's file of a table and a day (UTC) to a binary file.

        It requires a key with `export:read`. Bytes written before a lost connection remain.
        """
        target = path_of(sport_key, "export", table, date) + query_of(params)
        steps = self._reader.file_steps(target, self._transport.clock)
        return await download_async(self._transport, steps, self._reader.settings.url, to)

    def stream(self, **params: Unpack[api.GetStreamParams]) -> AsyncChanges:
        """Changes as they are published, and the resulting state. It connects when it is read."""
        return AsyncChanges(self._transport, self._reader.follower(params), params.get("heartbeat", HEARTBEAT_S))

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

    def _records(
        self, target: str, params: Mapping[str, object], max_items: int | None, path: tuple[str, ...] = ()
    ) -> AsyncRecordList[Any, Any]:
        async def fetch(query: str) -> Page[Any, Any]:
            response, meta, data = await self._get(target + query)
            return page_of(response, meta, data, "", query)

        async def since(cursor: str) -> Delta[Any]:
            return await self._transport.run(self._reader.delta_steps(target, params, cursor, self._transport.clock))

        return AsyncRecordList(fetch, Query(query_of(params), max_items, path), since)

    async def _one(self, target: str, params: Mapping[str, object], path: tuple[str, ...] = ()) -> Result[Any]:
        response, meta, data = await self._get(target + query_of(params))
        if not isinstance(data, dict):
            raise response.unexpected("is not an object")
        return Result(data, meta, path)

    async def _get(self, target: str) -> tuple[Response, Meta, Any]:
        return await self._transport.run(self._reader.steps(target, self._transport.clock))
