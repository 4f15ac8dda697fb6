"""Calls `linesman mcp` with the official client of the Model Context Protocol: python3 mcp_client.py PROGRAM

LINESMAN_URL and LINESMAN_KEY are those of a running server with sandbox data; LINESMAN_TEST_SPENT_KEY has a quota of one request.
The client itself checks every result against the schema of its tool.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

TOOLS = {
    "list_sports", "list_books", "list_events", "get_odds", "get_scores", "get_best", "get_fair", "list_arbitrages",
    "list_ev", "list_middles", "get_coverage", "explain_event", "get_status",
}  # fmt: skip
TEXT_BYTES_MAX = 64 * 1024


@asynccontextmanager
async def session(key: str, url: str = os.environ["LINESMAN_URL"]) -> AsyncIterator[ClientSession]:
    env = {"LINESMAN_URL": url, "LINESMAN_KEY": key}
    async with stdio_client(StdioServerParameters(command=sys.argv[1], args=["mcp"], env=env)) as (reading, writing):
        async with ClientSession(reading, writing) as client:
            await client.initialize()
            yield client


async def answer(client: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    result = json.loads((await client.call_tool(tool, arguments)).model_dump_json(by_alias=True))
    assert not result["isError"], result
    text = result["content"][0]["text"]
    assert json.loads(text) == result["structuredContent"] and len(text.encode()) <= TEXT_BYTES_MAX
    return result["structuredContent"]


async def error(client: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    result = json.loads((await client.call_tool(tool, arguments)).model_dump_json(by_alias=True))
    assert result["isError"], result
    return json.loads(result["content"][0]["text"])["error"]


async def main() -> None:
    key = os.environ["LINESMAN_KEY"]
    async with session(key) as client:
        listed = json.loads((await client.list_tools()).model_dump_json(by_alias=True))["tools"]
        assert {tool["name"] for tool in listed} == TOOLS
        assert all(tool["annotations"]["readOnlyHint"] and tool["description"] for tool in listed)
        assert key not in json.dumps(listed)
        event = (await answer(client, "list_events", sport_key="mma", status="scheduled"))["answer"][0]
        arguments = {"sport_key": "mma", "event_id": event["id"]}
        for tool in listed:
            wanted = {name: arguments[name] for name in tool["inputSchema"]["required"]}
            await answer(client, tool["name"], **wanted)
        # Lists are short unless more is asked for, and go on with a cursor.
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
        try:
            await client.call_tool("drop_tables", {})
        except Exception as refused:
            assert "no such tool" in str(refused)
        else:
            raise AssertionError("a tool that is not there was called")
    async with session(os.environ["LINESMAN_TEST_SPENT_KEY"]) as client:
        await client.call_tool("list_books", {})
        assert (await error(client, "list_sports"))["code"] == "quota_exceeded"
    async with session("sk_test_wrong") as client:
        refused = await error(client, "list_books")
        assert refused["code"] == "authentication_failed" and "sk_test_wrong" not in json.dumps(refused)
    print("mcp: ok")


asyncio.run(main())
