"""Files of the archive, written in pieces: they may be larger than memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import BinaryIO

import httpx2

from ._error import ConnectionFailed
from ._http import AsyncTransport, Request, Response, Steps, Transport, no_response
from ._reader import meta_of
from ._result import Meta


@dataclass(frozen=True)
class Export:
    """The result of a download."""

    meta: Meta
    bytes: int
    lineage: int | None
    """The `lineage` of the day's next file; None for the last."""


def download(transport: Transport, steps: Steps[Response], target: str, to: BinaryIO) -> Export:
    opened: list[httpx2.Response] = []

    def send(request: Request) -> Response | ConnectionFailed:
        answer = transport.open(request, transport.timeout)
        return _head(answer, opened)

    response = transport.run(steps, send)
    raw, written = opened[-1], 0
    try:
        for piece in raw.iter_raw():
            to.write(piece)
            written += len(piece)
    except httpx2.RequestError as error:
        lost = no_response(target, error)
    else:
        return Export(meta_of(response, from_cache=False), written, _next(response))
    finally:
        raw.close()
    # Raised outside of the handler: the cause would contain the request with its secret.
    raise lost


async def download_async(transport: AsyncTransport, steps: Steps[Response], target: str, to: BinaryIO) -> Export:
    opened: list[httpx2.Response] = []

    async def send(request: Request) -> Response | ConnectionFailed:
        answer = await transport.open(request, transport.timeout)
        return _head(answer, opened)

    response = await transport.run(steps, send)
    raw, written = opened[-1], 0
    try:
        async for piece in raw.aiter_raw():
            to.write(piece)
            written += len(piece)
    except httpx2.RequestError as error:
        lost = no_response(target, error)
    else:
        return Export(meta_of(response, from_cache=False), written, _next(response))
    finally:
        await raw.aclose()
    raise lost


def _head(
    answer: httpx2.Response | Response | ConnectionFailed, opened: list[httpx2.Response]
) -> Response | ConnectionFailed:
    if isinstance(answer, httpx2.Response):
        opened.append(answer)
        return Response(answer.status_code, answer.headers, b"")
    return answer


def _next(response: Response) -> int | None:
    found = re.search(r"[?&]lineage=([0-9]{1,5})>\s*;\s*rel=\"?next\b", response.headers.get("link", ""))
    return int(found[1]) if found else None
