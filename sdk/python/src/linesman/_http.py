"""Requests with a secret in one header: sending, retries, and the meaning of responses.

Nothing here sends anything: an exchange is a generator that yields requests and waits, and the two transports at the
end of this file carry them out. So there is one implementation for threads and for tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx2

from ._error import BY_CODE, ConnectionFailed, InvalidConfiguration, LinesmanError
from ._version import __version__

RETRIES_MAX = 2
RETRIED = (500, 502, 503, 504)
BACKOFF_MAX_S = 8.0
# Far larger than the largest page: a server that sends more is not Linesman.
RESPONSE_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True)
class Clock:
    """Time and random numbers, replaced in tests."""

    now: Callable[[], float] = time.monotonic
    """Seconds."""
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    """At least 0 and below 1."""


@dataclass(frozen=True)
class AsyncClock:
    """Time and random numbers for tasks, replaced in tests."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    # Not printed: it contains the secret.
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Response:
    status: int
    headers: httpx2.Headers
    body: bytes

    def parse(self, exact: bool = False) -> Any:
        """The body as JSON; `exact` reads numbers as `Decimal`."""
        try:
            if exact:
                return json.loads(self.body, parse_float=Decimal, parse_int=Decimal)
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise self.unexpected("is not JSON") from None

    def unexpected(self, what: str) -> LinesmanError:
        """The error for a response that the API does not define."""
        return LinesmanError(
            f"the response with status {self.status} {what}: is the URL that of a Linesman server?",
            code="unexpected_response",
            status=self.status,
            request_id=self.headers.get("x-request-id"),
        )

    def error(self) -> LinesmanError:
        """The error that a response other than 2xx and 304 describes."""
        try:
            told = json.loads(self.body)["error"]
            code, message = str(told["code"]), str(told["message"])
        except (ValueError, KeyError, TypeError, RecursionError):
            error = self.unexpected("has not the form of an error")
            error.retry_after = self.retry_after()
            return error
        param = told.get("param")
        return BY_CODE.get(code, LinesmanError)(
            message,
            code=code,
            status=self.status,
            param=None if param is None else str(param),
            request_id=str(told.get("request_id") or self.headers.get("x-request-id") or "") or None,
            retry_after=self.retry_after(),
        )

    def retry_after(self) -> float | None:
        """`Retry-After` in seconds; a date counts from the response's own `Date`."""
        text = self.headers.get("retry-after", "")
        if text.isascii() and text.isdecimal():
            return float(text)
        try:
            until = parsedate_to_datetime(text)
            return max(0.0, (until - parsedate_to_datetime(self.headers["date"])).total_seconds())
        except (ValueError, TypeError, KeyError):
            return None


Outcome = TypeVar("Outcome")
Steps: TypeAlias = Generator[Request | float, Response | ConnectionFailed | None, Outcome]
"""Requests to send and seconds to wait, each after the previous one is done."""


def exchange(request: Request, *, retried: tuple[int, ...], max_wait: float, random: Callable[[], float]) -> Steps[Response]:
    """Sends a request until it succeeds, fails permanently, or has failed too often.

    A GET is repeated after no response and 429 `rate_limited` too; other requests only after a status in `retried`.
    """
    is_get = request.method == "GET"
    for retries in range(RETRIES_MAX + 1):
        answer = yield request
        assert answer is not None
        if isinstance(answer, ConnectionFailed):
            error: LinesmanError = answer
            is_temporary = is_get
        elif 200 <= answer.status < 300 or answer.status == 304:
            return answer
        else:
            error = answer.error()
            is_temporary = answer.status in retried or (is_get and error.code == "rate_limited")
        # A used-up quota is not restored by waiting, whatever status a server sends.
        if not is_temporary or error.code == "quota_exceeded" or retries == RETRIES_MAX:
            raise error
        if error.retry_after is not None:
            least, wait = error.retry_after, error.retry_after * (1 + random() / 10)
        else:
            least = backoff(retries)
            wait = least * (0.75 + random() / 2)
        if least > max_wait:
            raise error
        yield wait
    raise AssertionError("the last attempt returns or raises")


def backoff(retries: int) -> float:
    """The wait before a retry in seconds, without the random part."""
    return min(0.5 * 2.0**retries, BACKOFF_MAX_S)


class Secret:
    """A key or token, and the header it is sent in. It is not printed."""

    __slots__ = ("_headers",)

    def __init__(self, header: str, value: str, prefix: str = "") -> None:
        if not all("!" <= letter <= "~" for letter in value):
            raise InvalidConfiguration(
                f"the value for {header} has characters that a key or token cannot have",
                code="invalid_configuration",
            )
        self._headers = {header: prefix + value} if value else {}

    def headers(self) -> dict[str, str]:
        return self._headers

    def __repr__(self) -> str:
        return "Secret(…)"


def base_url(text: str) -> str:
    """The address of a server, without a trailing slash."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise InvalidConfiguration("the url is not an address", code="invalid_configuration") from None
    if not is_address or parts.query or parts.fragment:
        problem = "the url must be an http or https address without query and fragment"
    elif parts.username or parts.password:
        problem = "the url must not contain a user and password"
    else:
        return parts.geturl().rstrip("/")
    raise InvalidConfiguration(problem, code="invalid_configuration")


class Settings:
    """The settings that both transports share: address, secret, headers."""

    def __init__(self, url: str, secret: Secret, headers: Mapping[str, str] | None, max_wait: float) -> None:
        self.url = base_url(url)
        self.secret = secret
        self.headers = {**(headers or {}), "User-Agent": f"linesman-client-python/{__version__}"}
        self.max_wait = max_wait

    def request(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Request:
        return Request(method, self.url + target, {**self.headers, **headers, **self.secret.headers()}, body)


def no_response(url: str, error: httpx2.RequestError) -> ConnectionFailed:
    reason = str(error) or type(error).__name__
    parts = urlsplit(url)
    message = f"no response from {parts.scheme}://{parts.netloc}: {reason}"
    return ConnectionFailed(message, code="connection_failed")


def too_large(response: httpx2.Response) -> LinesmanError:
    message = f"the response is larger than {RESPONSE_BYTES_MAX} bytes: is the URL that of a Linesman server?"
    return LinesmanError(message, code="unexpected_response", status=response.status_code)


def tls(url: str) -> ssl.SSLContext | bool:
    """The certificates to trust; none for a server without TLS, as loading them takes 50 ms."""
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Transport:
    """Carries out exchanges in the calling thread."""

    def __init__(self, settings: Settings, timeout: float, clock: Clock | None) -> None:
        self.settings = settings
        self.clock = clock or Clock()
        self.timeout = timeout
        self._client = httpx2.Client(timeout=timeout, follow_redirects=False, verify=tls(settings.url))

    def run(
        self, steps: Steps[Outcome], send: Callable[[Request], Response | ConnectionFailed] | None = None
    ) -> Outcome:
        """Carries out an exchange; `send` is another way to get a response."""
        answer: Response | ConnectionFailed | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            if isinstance(step, Request):
                answer = (send or self._send)(step)
            else:
                self.clock.sleep(step)
                answer = None

    def _send(self, request: Request) -> Response | ConnectionFailed:
        try:
            stream = self._client.stream(
                request.method, request.url, headers=dict(request.headers), content=request.body
            )
            with stream as response:
                return self._read(response)
        except httpx2.RequestError as error:
            # Returned, not raised: the cause would contain the request with its secret.
            return no_response(request.url, error)

    def open(self, request: Request, silence_max: float) -> httpx2.Response | Response | ConnectionFailed:
        """A successful response is read in pieces and must be closed by the caller; a failed one is read here."""
        timeout = httpx2.Timeout(self.timeout, read=silence_max)
        made = self._client.build_request(request.method, request.url, headers=dict(request.headers), timeout=timeout)
        try:
            response = self._client.send(made, stream=True)
            if response.is_success:
                return response
            with contextlib.closing(response):
                return self._read(response)
        except httpx2.RequestError as error:
            return no_response(request.url, error)

    def _read(self, response: httpx2.Response) -> Response:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > RESPONSE_BYTES_MAX:
                raise too_large(response)
        return Response(response.status_code, response.headers, bytes(body))

    def close(self) -> None:
        self._client.close()


class AsyncTransport:
    """Carries out exchanges in tasks."""

    def __init__(self, settings: Settings, timeout: float, clock: AsyncClock | None) -> None:
        self.settings = settings
        self.clock = clock or AsyncClock()
        self.timeout = timeout
        self._client = httpx2.AsyncClient(timeout=timeout, follow_redirects=False, verify=tls(settings.url))

    async def run(
        self, steps: Steps[Outcome], send: Callable[[Request], Awaitable[Response | ConnectionFailed]] | None = None
    ) -> Outcome:
        """Carries out an exchange; `send` is another way to get a response."""
        answer: Response | ConnectionFailed | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            if isinstance(step, Request):
                answer = await (send or self._send)(step)
            else:
                await self.clock.sleep(step)
                answer = None

    async def _send(self, request: Request) -> Response | ConnectionFailed:
        try:
            stream = self._client.stream(
                request.method, request.url, headers=dict(request.headers), content=request.body
            )
            async with stream as response:
                return await self._read(response)
        except httpx2.RequestError as error:
            return no_response(request.url, error)

    async def open(self, request: Request, silence_max: float) -> httpx2.Response | Response | ConnectionFailed:
        """A successful response is read in pieces and must be closed by the caller; a failed one is read here."""
        timeout = httpx2.Timeout(self.timeout, read=silence_max)
        made = self._client.build_request(request.method, request.url, headers=dict(request.headers), timeout=timeout)
        try:
            response = await self._client.send(made, stream=True)
            if response.is_success:
                return response
            async with contextlib.aclosing(response):
                return await self._read(response)
        except httpx2.RequestError as error:
            return no_response(request.url, error)

    async def _read(self, response: httpx2.Response) -> Response:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > RESPONSE_BYTES_MAX:
                raise too_large(response)
        return Response(response.status_code, response.headers, bytes(body))

    async def close(self) -> None:
        await self._client.aclose()


class Closing:
    """A client that is closed at the end of a `with` block."""

    _transport: Transport

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport.settings.url!r})"


class AsyncClosing:
    """A client that is closed at the end of an `async with` block."""

    _transport: AsyncTransport

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport.settings.url!r})"
