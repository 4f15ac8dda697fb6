"""A proxy for tests of the clients: it records requests, fails on demand and adds unknown fields and values.

    python3 proxy.py http://127.0.0.1:8080

prints the address at which proxies are created; README.md in this folder describes the interface.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 30
# Fields whose values are enumerations.
SETS = ("market", "format", "status", "state", "method")
# Headers of a single connection, or replaced by the proxy.
HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


def add_fields(value: Any) -> Any:
    if isinstance(value, list):
        return [add_fields(item) for item in value]
    if isinstance(value, dict):
        return {name: add_fields(item) for name, item in value.items()} | {"unknown_field": {"new": True}}
    return value


def change_values(value: Any) -> Any:
    if isinstance(value, list):
        return [change_values(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: change_values(item) for name, item in value.items()}
    for name in SETS:
        if isinstance(changed.get(name), str):
            changed[name] = "unknown_value"
    if isinstance(changed.get("regions"), list):
        changed["regions"] = ["unknown_value" for _ in changed["regions"]]
    return changed


def change_code(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        value["error"]["code"] = "unknown_code"
    return value


CHANGES = {"fields": add_fields, "values": change_values, "codes": change_code}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class ProxyHandler(Handler):
    server: Proxy

    def pass_on(self) -> None:
        body = self.read_body()
        seen: dict[str, Any] = {
            "method": self.command,
            "target": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": base64.b64encode(body).decode(),
            "status": None,
        }
        step = self.server.record(seen)
        if step.get("drop"):
            self.close_connection = True
            return
        if "status" in step:
            status, headers = step["status"], dict(step.get("headers", {}))
            content = step.get("body", "").encode()
        else:
            status, headers, content = self.forward(step, body)
        replaced = [name.lower() for name in self.server.headers]
        headers = {name: value for name, value in headers.items() if name.lower() not in replaced}
        headers |= self.server.headers
        seen["status"] = status
        if "repeat" in step or "broken" in step:
            return self.answer_in_pieces(status, headers, [content] * step.get("repeat", 1), "broken" in step)
        self.answer(status, headers, content)

    def answer_in_pieces(self, status: int, headers: dict[str, str], pieces: list[bytes], broken: bool) -> None:
        """Closes the connection after the pieces; `broken` announces more bytes than are sent."""
        self.close_connection = True
        self.send_response_only(status)
        length = sum(map(len, pieces)) + broken
        for name, value in (headers | {"Content-Length": str(length), "Connection": "close"}).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for piece in pieces:
                self.wfile.write(piece)
        except OSError:
            pass  # The client has read enough.

    def forward(self, step: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        if "fault" in step:
            headers["X-Sandbox-Fault"] = step["fault"]
        if self.server.unknown:
            headers = {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=TIMEOUT_S)
        try:
            upstream.request(self.command, self.path, body or None, headers)
            response = upstream.getresponse()
            content = response.read()
        finally:
            upstream.close()
        answered = {name: value for name, value in response.getheaders() if name.lower() not in HOP_BY_HOP}
        if content and response.getheader("Content-Type", "").startswith("application/json"):
            content = self.changed(content)
        elif response.getheader("Content-Type", "").startswith("text/event-stream"):
            content = re.sub(rb"(?m)^data: (.*)$", lambda line: b"data: " + self.changed(line[1]), content)
        return response.status, answered, content

    def changed(self, content: bytes) -> bytes:
        """JSON with the proxy's additions."""
        if not self.server.unknown:
            return content
        value = json.loads(content)
        for name in self.server.unknown:
            value = CHANGES[name](value)
        return json.dumps(value).encode()

    do_GET = do_HEAD = do_POST = pass_on


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: str, wanted: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), ProxyHandler)
        self.upstream = upstream
        self.script: list[dict[str, Any]] = list(wanted.get("script", []))
        self.unknown: list[str] = [name for name in wanted.get("unknown", []) if CHANGES[name]]
        self.headers: dict[str, str] = wanted.get("headers", {})
        self.seen: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def record(self, seen: dict[str, Any]) -> dict[str, Any]:
        """Records a request; returns its entry of the script."""
        with self.lock:
            self.seen.append(seen)
            return self.script.pop(0) if self.script else {}


class MakerHandler(Handler):
    server: Maker

    def do_POST(self) -> None:
        body = self.read_body()
        if self.path != "/proxies":
            return self.reply(404, {"error": "POST /proxies makes a proxy"})
        try:
            proxy = Proxy(self.server.upstream, json.loads(body or b"{}"))
        except (ValueError, KeyError, TypeError) as error:
            return self.reply(400, {"error": f"not a proxy as README.md describes it: {error!r}"})
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        with self.server.lock:
            self.server.proxies.append(proxy)
            number = len(self.server.proxies) - 1
        here = f"http://127.0.0.1:{self.server.server_port}"
        self.reply(200, {"url": f"http://127.0.0.1:{proxy.server_port}", "requests": f"{here}/proxies/{number}"})

    def do_GET(self) -> None:
        number = self.path.removeprefix("/proxies/")
        with self.server.lock:
            known = number.isdecimal() and int(number) < len(self.server.proxies)
            proxy = self.server.proxies[int(number)] if known else None
        if proxy is None:
            return self.reply(404, {"error": "no such proxy"})
        with proxy.lock:
            seen = list(proxy.seen)
        self.reply(200, seen)

    def reply(self, status: int, value: Any) -> None:
        self.answer(status, {"Content-Type": "application/json"}, json.dumps(value).encode())


class Maker(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), MakerHandler)
        self.upstream = upstream
        self.proxies: list[Proxy] = []
        self.lock = threading.Lock()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    maker = Maker(urlsplit(sys.argv[1]).netloc)
    print(f"http://127.0.0.1:{maker.server_port}", flush=True)
    maker.serve_forever()


if __name__ == "__main__":
    main()
