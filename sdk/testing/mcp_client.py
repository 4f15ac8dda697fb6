"""Uses the API for agents through the official client of the protocol: python3 mcp_client.py PROGRAM

Over both transports: `linesman mcp`, and /mcp of the running server with sandbox data that LINESMAN_URL and
LINESMAN_KEY name. LINESMAN_TEST_OTHER_URL is another node with the same keys, LINESMAN_TEST_DATA the data folder of the
first. The client itself checks every result of a tool against its schema.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any, ClassVar

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

IS_V1 = version("mcp").startswith("1.")
if IS_V1:
    import httpx
else:
    import httpx2 as httpx
    from mcp import Client

PROGRAM = sys.argv[1]
URL = os.environ["LINESMAN_URL"]
OTHER_URL = os.environ["LINESMAN_TEST_OTHER_URL"]
TOOLS = {
    "list_sports", "list_books", "list_events", "get_odds", "get_scores", "get_best", "get_fair", "list_arbitrages",
    "list_ev", "list_middles", "get_coverage", "explain_event", "get_status",
}  # fmt: skip
PROMPTS = {
    "compare_prices": {"event": "Ann Archer"},
    "why_no_price": {"event": "Ann Archer", "bookmaker": "fanduel"},
    "fair_price": {"event": "Ann Archer", "method": "shin"},
}
TEXT_BYTES_MAX = 64 * 1024
# A check that takes longer is considered stuck: it makes dozens of calls, and the machine may be busy.
PATIENCE_S = 300

Connect = Callable[[str], AbstractAsyncContextManager[Any]]


class InTurn(httpx.AsyncBaseTransport):
    """Sends requests to several nodes, alternating."""

    # The statuses of all answers: the errors of the clients do not always contain them.
    statuses: ClassVar[list[int]] = []

    def __init__(self, nodes: list[str]) -> None:
        self._transport = httpx.AsyncHTTPTransport()
        self._nodes = [httpx.URL(node) for node in nodes]
        self.sent = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        node = self._nodes[self.sent % len(self._nodes)]
        self.sent += 1
        request.url = request.url.copy_with(host=node.host, port=node.port)
        request.headers["host"] = f"{node.host}:{node.port}"
        response = await self._transport.handle_async_request(request)
        self.statuses.append(response.status_code)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


def over_stdio(key: str) -> AbstractAsyncContextManager[Any]:
    env = {"LINESMAN_URL": URL, "LINESMAN_KEY": key}
    return stdio_client(StdioServerParameters(command=PROGRAM, args=["mcp"], env=env))


@asynccontextmanager
async def over_http(key: str, *others: str) -> AsyncIterator[Any]:
    transport = InTurn([URL, *others])
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, transport=transport) as http:
        async with streamable_http_client(f"{URL}/mcp", http_client=http) as streams:
            yield streams[:2]
    assert transport.sent > 1


def over_two_nodes(key: str) -> AbstractAsyncContextManager[Any]:
    return over_http(key, OTHER_URL)


@asynccontextmanager
async def session(connect: Connect, mode: str, key: str) -> AsyncIterator[Any]:
    """A client of either version: both have the methods used here."""
    if IS_V1:
        async with connect(key) as (reading, writing), ClientSession(reading, writing) as client:
            begun = await client.initialize()
            assert begun.protocolVersion == "2025-11-25" and begun.instructions
            yield client
    else:
        async with Client(connect(key), mode=mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert client.instructions
            yield client


def plain(model: Any) -> dict[str, Any]:
    return json.loads(model.model_dump_json(by_alias=True, exclude_none=True))


async def answer(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = plain(await client.call_tool(tool, arguments))
    assert not result["isError"], result
    text = result["content"][0]["text"]
    assert json.loads(text) == result["structuredContent"] and len(text.encode()) <= TEXT_BYTES_MAX
    return result["structuredContent"]


async def error(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = plain(await client.call_tool(tool, arguments))
    assert result["isError"], result
    return json.loads(result["content"][0]["text"])["error"]


async def refused(awaited: Any) -> str:
    """The text of the protocol's own error."""
    try:
        found = await awaited
    except Exception as failure:
        return str(failure)
    raise AssertionError(f"{found} is not a refusal")


def keys(*arguments: str) -> str:
    command = [PROGRAM, "--data", os.environ["LINESMAN_TEST_DATA"], "keys", *arguments]
    # The program refuses settings that it does not know.
    env = {name: value for name, value in os.environ.items() if not name.startswith("LINESMAN_")}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()


def make_key(*options: str) -> str:
    return keys("create", "--kind", "sandbox", "--name", "agent", *options)


async def check_tools(client: Any, key: str) -> None:
    listed = plain(await client.list_tools())["tools"]
    assert {tool["name"] for tool in listed} == TOOLS
    assert all(tool["annotations"]["readOnlyHint"] and tool["description"] for tool in listed)
    assert key not in json.dumps(listed)
    event = (await answer(client, "list_events", sport_key="mma", status="scheduled"))["answer"][0]
    arguments = {"sport_key": "mma", "event_id": event["id"]}
    for tool in listed:
        wanted = {name: arguments[name] for name in tool["inputSchema"]["required"]}
        await answer(client, tool["name"], **wanted)
    # Lists are short unless a higher limit is given, and continue with a cursor.
    first = await answer(client, "list_events", sport_key="mma")
    assert len(first["answer"]) == 20
    second = await answer(client, "list_events", sport_key="mma", cursor=first["next_cursor"])
    assert first["answer"][-1]["id"] not in {event["id"] for event in second["answer"]}
    long = await answer(client, "get_odds", sport_key="golf", limit=100, regions=["us", "uk", "eu", "au"])
    assert len(long["answer"]) + long["left_out"] == 100
    # Errors are those of the API.
    assert (await error(client, "get_odds", sport_key="chess"))["code"] == "sport_not_found"
    wrong = await error(client, "get_odds", sport_key="mma", market="nothing")
    assert (wrong["code"], wrong["param"]) == ("invalid_parameter", "market") and wrong["request_id"]
    assert (await error(client, "get_odds", sport_key="mma", limit=101))["param"] == "limit"
    assert (await error(client, "get_odds"))["param"] == "sport_key"
    assert (await error(client, "get_odds", sport_key="mma", api_key=key))["param"] == "api_key"
    assert "no such tool" in await refused(client.call_tool("drop_tables", {}))


async def check_resources(client: Any) -> None:
    listed = plain(await client.list_resources())["resources"]
    names = {"openapi", "docs/errors", "docs/analytics", "docs/coverage", "docs/sandbox"}
    assert {resource["uri"] for resource in listed} == {f"linesman://{name}" for name in names}
    for resource in listed:
        [content] = plain(await client.read_resource(resource["uri"]))["contents"]
        assert len(content["text"].encode()) == resource["size"] > 500
    [template] = plain(await client.list_resource_templates())["resourceTemplates"]
    # The data may change between the list and the resource, but only at a full hour.
    for _ in range(2):
        event = (await answer(client, "list_events", sport_key="golf"))["answer"][0]
        uri = template["uriTemplate"].replace("{event_id}", event["id"])
        [content] = plain(await client.read_resource(uri))["contents"]
        shown = json.loads(content["text"])
        if shown == event:
            break
    assert shown == event
    assert "no such" in await refused(client.read_resource("linesman://events/evt_0"))


async def check_prompts(client: Any) -> None:
    listed = plain(await client.list_prompts())["prompts"]
    assert {prompt["name"] for prompt in listed} == set(PROMPTS)
    for name, arguments in PROMPTS.items():
        [message] = plain(await client.get_prompt(name, arguments))["messages"]
        text = message["content"]["text"]
        assert "how old" in text and "certain" in text and all(value in text for value in arguments.values())
    assert "is needed" in await refused(client.get_prompt("compare_prices", {}))


async def check(connect: Connect, mode: str) -> None:
    key = os.environ["LINESMAN_KEY"]
    async with session(connect, mode, key) as client:
        await check_tools(client, key)
        await check_resources(client)
        await check_prompts(client)


async def check_keys(connect: Connect, mode: str) -> None:
    """An exhausted quota, a revoked key, a wrong key."""
    async with session(connect, mode, make_key("--requests-per-day", "1")) as client:
        await answer(client, "list_books")
        assert (await error(client, "list_sports"))["code"] == "quota_exceeded"
    revoked = make_key()
    assert await denial(connect, mode, revoked, before=lambda: keys("revoke", revoked))
    assert await denial(connect, mode, "sk_test_wrong", before=None)


async def denial(connect: Connect, mode: str, key: str, before: Callable[[], object] | None) -> bool:
    """Whether a call fails because of its key: over HTTP the whole request, over stdio the tool."""
    InTurn.statuses.clear()
    try:
        async with session(connect, mode, key) as client:
            if before:
                await answer(client, "list_books")
                before()
            # Never answered from the cache of `linesman mcp`.
            told = await error(client, "get_status")
    except Exception as failure:
        text = "; ".join(texts(failure))
        assert connect is over_http and key not in text, text
        return 401 in InTurn.statuses
    assert connect is over_stdio and key not in json.dumps(told)
    return told["code"] == "authentication_failed"


def texts(failure: BaseException) -> list[str]:
    """The texts of an error, or of all in a group."""
    inner = getattr(failure, "exceptions", ())
    return [text for one in inner for text in texts(one)] or [str(failure)]


async def main() -> None:
    for mode in ["legacy"] if IS_V1 else ["legacy", "auto"]:
        for connect in (over_stdio, over_http, over_two_nodes):
            await asyncio.wait_for(check(connect, mode), PATIENCE_S)
            if connect is not over_two_nodes:
                await asyncio.wait_for(check_keys(connect, mode), PATIENCE_S)
            print(f"mcp {version('mcp')}, {mode}, {connect.__name__}: ok")


asyncio.run(main())
