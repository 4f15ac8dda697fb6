"""Parts that both clients share: requests through the cache, and the meaning of responses."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

from ._cache import Cache, Entry, entry_of
from ._http import RETRIED, AsyncClock, Clock, Request, Response, Secret, Settings, Steps, exchange
from ._result import Delta, Meta, Page
from ._stream import Follower

URL = "http://127.0.0.1:8080"
STATUS = "/v1/status"
# Maximum number of digits of a count; Python refuses to parse thousands of digits.
DIGITS_MAX = 18


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
    """The query of the next page. Only the query: the key is sent to no other address, whatever `Link` contains."""
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
        cursor=response.headers.get("x-cursor"),
    )


def delta_of(response: Response, exact: bool) -> Delta[Any]:
    """The answer to `since`; 204 means that nothing changed."""
    meta = meta_of(response, from_cache=False)
    nothing: dict[str, Any] = {"cursor": meta.cursor, "upserts": [], "removed": []}
    data = nothing if response.status == 204 else response.parse(exact)
    fields = {"cursor": str, "upserts": list, "removed": list}
    if not isinstance(data, dict) or not all(isinstance(data.get(name), kind) for name, kind in fields.items()):
        raise response.unexpected("does not say what changed")
    return Delta(data["cursor"], data["upserts"], data["removed"], meta)


class Reader:
    """Requests through the cache, for both clients."""

    def __init__(self, settings: Settings, cache: bool, exact: bool) -> None:
        self.settings = settings
        self.cache = Cache() if cache else None
        self.exact = exact

    def steps(self, target: str, clock: Clock | AsyncClock) -> Steps[tuple[Response, Meta, Any]]:
        """The exchange for a GET; returns the response, its metadata, and its body."""
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

    def delta_steps(
        self, target: str, params: Mapping[str, object], cursor: str, clock: Clock | AsyncClock
    ) -> Steps[Delta[Any]]:
        """The exchange for the changes since a cursor. It is requested only once, so it is not cached."""
        # The page size is not part of the selection.
        given = {name: value for name, value in params.items() if name != "limit"}
        target += query_of({**given, "since": cursor})
        request = self.settings.request("GET", target, {"Accept": "application/json"})
        response = yield from self._confirm(request, None, clock)
        return delta_of(response, self.exact)

    def file_steps(self, target: str, clock: Clock | AsyncClock) -> Steps[Response]:
        """The exchange for a file, which is not cached and not compressed again."""
        request = self.settings.request("GET", target, {"Accept-Encoding": "identity"})
        return self._confirm(request, None, clock)

    def follower(self, params: Mapping[str, object]) -> Follower:
        return Follower(self.settings, "/v1/stream" + query_of(params), self.exact)

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
