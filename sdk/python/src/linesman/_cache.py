"""Cached responses: within `max-age` they need no request, after that they are revalidated by `ETag`."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from ._http import Response

RESPONSES_MAX = 128
BYTES_MAX = 32 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    response: Response
    fresh_until: float

    @property
    def etag(self) -> str | None:
        etag: str | None = self.response.headers.get("etag")
        return etag

    def is_fresh(self, now: float) -> bool:
        return now < self.fresh_until

    def renewed(self, unchanged: Response, now: float) -> Entry:
        """This response after a 304: the same body, with the headers of the 304."""
        headers = self.response.headers.copy()
        headers.update(unchanged.headers)
        return Entry(replace(self.response, headers=headers), fresh_until(unchanged, now))


def entry_of(response: Response, now: float) -> Entry | None:
    """A response to cache; None if its server forbids it or it could never be used."""
    if "no-store" in response.headers.get("cache-control", "").lower():
        return None
    entry = Entry(response, fresh_until(response, now))
    return entry if entry.etag or entry.is_fresh(now) else None


def fresh_until(response: Response, now: float) -> float:
    found = re.search(r"\bmax-age=(\d{1,9})\b", response.headers.get("cache-control", ""), re.IGNORECASE)
    return now + int(found[1]) if found else now


class Cache:
    """The responses of one client, by URL: a client has one key. The least recently used is removed first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._bytes = 0
        # A client may be used by many threads.
        self._lock = threading.Lock()

    def get(self, url: str) -> Entry | None:
        with self._lock:
            if url in self._entries:
                self._entries.move_to_end(url)
            return self._entries.get(url)

    def put(self, url: str, entry: Entry) -> None:
        with self._lock:
            self._remove(url)
            if len(entry.response.body) > BYTES_MAX:
                return
            self._entries[url] = entry
            self._bytes += len(entry.response.body)
            while len(self._entries) > RESPONSES_MAX or self._bytes > BYTES_MAX:
                self._remove(next(iter(self._entries)))

    def _remove(self, url: str) -> None:
        entry = self._entries.pop(url, None)
        self._bytes -= len(entry.response.body) if entry else 0
