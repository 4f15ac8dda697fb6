"""Follows a stream with a public client, through a restart of the server, and compares it with the list at every cut."""

import http.client
import json
import sys
import time
import urllib.request

CUTS_AFTER = 3
PATIENCE_S = 240

library, base_url, key = sys.argv[1:]
target = "/v1/stream?sports=mma&freshness=records&heartbeat=5"
known, cursors, hellos = {}, [], []
deadline = time.monotonic() + PATIENCE_S


def httpx_sse_events(last):
    import httpx
    import httpx_sse

    headers = {"X-API-Key": key} | ({"Last-Event-ID": last} if last else {})
    with httpx.Client(timeout=20, trust_env=False) as client:
        with httpx_sse.connect_sse(client, "GET", base_url + target, headers=headers) as source:
            source.response.raise_for_status()
            for event in source.iter_sse():
                yield event.event, event.id, json.loads(event.data)


def sseclient_events(last):
    import requests
    import sseclient

    headers = {"X-API-Key": key} | ({"Last-Event-ID": last} if last else {})
    session = requests.Session()
    session.trust_env = False
    with session.get(base_url + target, headers=headers, stream=True, timeout=20) as answer:
        answer.raise_for_status()
        for event in sseclient.SSEClient(answer).events():
            yield event.event, event.id, json.loads(event.data)


def websockets_events(last):
    from websockets.sync.client import connect

    url = base_url.replace("http://", "ws://") + target + (f"&since={last}" if last else "")
    with connect(url, additional_headers={"X-API-Key": key}, proxy=None, max_size=None) as socket:
        for text in socket:
            message = json.loads(text)
            yield message["event"], message.get("id"), message["data"]


def expected(at):
    while True:
        try:
            return read_all(at)
        except (OSError, http.client.HTTPException):  # The server is being restarted.
            assert time.monotonic() < deadline
            time.sleep(0.2)


def read_all(at):
    records, path = {}, f"/v1/sports/mma/odds?limit=500&as_of={at}"
    while path:
        request = urllib.request.Request(base_url + path, headers={"X-API-Key": key})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
            records |= {record["id"]: record for record in json.load(answer)}
            link = answer.headers.get("Link") or ""
        path = link.partition("<")[2].partition(">")[0] if 'rel="next"' in link else None
    return records


def take(event, event_id, data):
    assert event != "reset", data
    if event == "hello":
        hellos.append(data["resumed"])
        if not data["resumed"]:
            known.clear()
    for record in data.get("records", []) + data.get("upserts", []):
        known[record["id"]] = record
    for gone in data.get("removed", []):
        # The record may have appeared and disappeared between two cuts.
        known.pop(gone["id"], None)
    for at, ids in data.get("touched", {}).items():
        for record_id in ids:
            known[record_id]["last_update"] = at
    if event == "cut":
        assert event_id == data["cursor"] and event_id not in cursors, "a cut came twice"
        assert known == expected(data["at"]), f"the state differs at {data['at']}"
        cursors.append(event_id)
        print("cut", flush=True)


events = {"httpx-sse": httpx_sse_events, "sseclient-py": sseclient_events, "websockets": websockets_events}[library]
after = None
while after is None or len(cursors) < after + CUTS_AFTER:
    assert time.monotonic() < deadline, f"{len(cursors)} cuts, {hellos}"
    try:
        for one in events(cursors[-1] if cursors else None):
            if one[0] == "hello" and hellos:
                # Reconnected: all events from here on were missed or are new.
                after = len(cursors)
            take(*one)
            if after is not None and len(cursors) >= after + CUTS_AFTER:
                break
    except AssertionError:
        raise
    except Exception as error:  # Each library raises its own error for a broken connection.
        print("away:", type(error).__name__, flush=True)
        time.sleep(0.2)
assert hellos[0] is False and len(hellos) >= 2 and all(hellos[1:]), hellos
