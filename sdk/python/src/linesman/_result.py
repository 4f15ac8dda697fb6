"""The results of methods: lists that are read page by page, and single answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _frame
from .types import Removed

if TYPE_CHECKING:
    import pandas
    import polars

Item = TypeVar("Item")
Data = TypeVar("Data")


@dataclass(frozen=True)
class Meta:
    """The metadata of a response and of the key."""

    request_id: str | None
    etag: str | None
    from_cache: bool
    """The response came from the cache: no request was made, or the server confirmed it with 304."""
    requests_remaining: int | None
    """Of the tightest quota."""
    requests_used: int | None
    cursor: str | None = None
    """For odds, scores and events: the position of the response, for `since`."""


@dataclass(frozen=True)
class Result(Generic[Data]):
    """A single answer."""

    data: Data
    meta: Meta
    _path: tuple[str, ...] = ()

    def to_pandas(self) -> pandas.DataFrame:
        """The answer as rows; needs the extra `pandas`."""
        return _frame.to_pandas(_frame.rows(self.data, self._path))

    def to_polars(self) -> polars.DataFrame:
        """The answer as rows; needs the extra `polars`."""
        return _frame.to_polars(_frame.rows(self.data, self._path))


@dataclass(frozen=True)
class Page(Generic[Item, Data]):
    """One page of a list."""

    items: list[Item]
    data: Data
    """The whole body."""
    meta: Meta
    next: str | None = None
    """The query of the next page; None for the last."""


@dataclass(frozen=True)
class Delta(Generic[Item]):
    """The changes of a list since a cursor. Store `upserts` by id and delete the ids in `removed`."""

    cursor: str
    """The position of this answer: the next `since`."""
    upserts: list[Item]
    """New and changed records."""
    removed: list[Removed]
    """Records that the selection no longer has."""
    meta: Meta


@dataclass(frozen=True)
class Query:
    """The query of the first page, and options of the list."""

    first: str
    max_items: int | None
    path: tuple[str, ...]
    """The path to the rows of a table."""


class List(Generic[Item, Data]):
    """All items of a list. Pages are requested when the iteration reaches them; each iteration starts again."""

    def __init__(self, fetch: Callable[[str], Page[Item, Data]], query: Query) -> None:
        self._fetch = fetch
        self._query = query

    def pages(self) -> Iterator[Page[Item, Data]]:
        """Page by page; the last one is complete, even if `max_items` ends within it."""
        left, query = self._query.max_items, self._query.first
        while left is None or left > 0:
            page = self._fetch(query)
            yield page
            if page.next is None:
                return
            query = page.next
            left = None if left is None else left - len(page.items)

    def __iter__(self) -> Iterator[Item]:
        left = self._query.max_items
        for page in self.pages():
            items = page.items if left is None else page.items[:left]
            yield from items
            left = None if left is None else left - len(items)

    def _rows(self) -> Iterator[dict[str, Any]]:
        left = self._query.max_items
        for page in self.pages():
            yield from _frame.page_rows(page.data, page.items[:left], self._query.path)
            left = None if left is None else left - len(page.items[:left])

    def to_pandas(self) -> pandas.DataFrame:
        """All items as rows; needs the extra `pandas`."""
        return _frame.to_pandas(self._rows())

    def to_polars(self) -> polars.DataFrame:
        """All items as rows; needs the extra `polars`."""
        return _frame.to_polars(self._rows())


class RecordList(List[Item, Data]):
    """A list whose changes can be requested."""

    def __init__(
        self, fetch: Callable[[str], Page[Item, Data]], query: Query, since: Callable[[str], Delta[Item]]
    ) -> None:
        super().__init__(fetch, query)
        self._since = since

    def since(self, cursor: str) -> Delta[Item]:
        """The changes since `meta.cursor` of a page, or since `cursor` of the previous delta: one request, which costs
        no quota if nothing changed. `CursorExpired`: read the list again."""
        return self._since(cursor)


class AsyncList(Generic[Item, Data]):
    """All items of a list, for tasks. Pages are requested when the iteration reaches them."""

    def __init__(self, fetch: Callable[[str], Awaitable[Page[Item, Data]]], query: Query) -> None:
        self._fetch = fetch
        self._query = query

    async def pages(self) -> AsyncIterator[Page[Item, Data]]:
        """Page by page; the last one is complete, even if `max_items` ends within it."""
        left, query = self._query.max_items, self._query.first
        while left is None or left > 0:
            page = await self._fetch(query)
            yield page
            if page.next is None:
                return
            query = page.next
            left = None if left is None else left - len(page.items)

    async def __aiter__(self) -> AsyncIterator[Item]:
        left = self._query.max_items
        async for page in self.pages():
            items = page.items if left is None else page.items[:left]
            for item in items:
                yield item
            left = None if left is None else left - len(items)

    async def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        left = self._query.max_items
        async for page in self.pages():
            rows += _frame.page_rows(page.data, page.items[:left], self._query.path)
            left = None if left is None else left - len(page.items[:left])
        return rows

    async def to_pandas(self) -> pandas.DataFrame:
        """All items as rows; needs the extra `pandas`."""
        return _frame.to_pandas(await self._rows())

    async def to_polars(self) -> polars.DataFrame:
        """All items as rows; needs the extra `polars`."""
        return _frame.to_polars(await self._rows())


class AsyncRecordList(AsyncList[Item, Data]):
    """A list whose changes can be requested, for tasks."""

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[Page[Item, Data]]],
        query: Query,
        since: Callable[[str], Awaitable[Delta[Item]]],
    ) -> None:
        super().__init__(fetch, query)
        self._since = since

    async def since(self, cursor: str) -> Delta[Item]:
        """The changes since `meta.cursor` of a page, or since `cursor` of the previous delta: one request, which costs
        no quota if nothing changed. `CursorExpired`: read the list again."""
        return await self._since(cursor)
