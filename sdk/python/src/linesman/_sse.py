"""Server-Sent Events, limited to the parts that the API uses."""

from __future__ import annotations

from ._error import LinesmanError
from ._state import unexpected

# An event has at most 500 records.
EVENT_BYTES_MAX = 16 * 1024 * 1024
# Maximum reconnection delay that a server may request.
RETRY_MAX_S = 60.0


class Parser:
    """Parses the pieces of a body into events."""

    def __init__(self) -> None:
        self.retry: float | None = None
        self._buffer = bytearray()
        # Number of buffered bytes without an end of line.
        self._searched = 0
        self._event = ""
        self._data: list[str] = []
        self._bytes = 0

    def add(self, piece: bytes) -> None:
        self._buffer += piece

    def next(self) -> tuple[str, str] | None:
        """The name and the data of the next complete event."""
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = self._buffer[:end].removesuffix(b"\r")
            del self._buffer[: end + 1]
            self._searched = 0
            if not line:
                event, data = self._event, self._data
                self._event, self._data, self._bytes = "", [], 0
                if data:
                    return event, "\n".join(data)
                continue
            self._bytes += len(line)
            if self._bytes > EVENT_BYTES_MAX:
                raise self._too_large()
            self._field(line)
        self._searched = len(self._buffer)
        if self._searched + self._bytes > EVENT_BYTES_MAX:
            raise self._too_large()
        return None

    def _field(self, line: bytearray) -> None:
        try:
            name, _, value = line.decode().partition(":")
        except UnicodeDecodeError:
            raise unexpected("a stream is not UTF-8") from None
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "retry" and value.isascii() and value.isdecimal():
            self.retry = RETRY_MAX_S if len(value) > 6 else min(int(value) / 1000, RETRY_MAX_S)
        # Others are comments, and the cursor, which is also in the data of a cut.

    @staticmethod
    def _too_large() -> LinesmanError:
        return unexpected(f"an event of a stream has more than {EVENT_BYTES_MAX} bytes")
