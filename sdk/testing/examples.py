"""Collects the programs of the documentation that use our clients: python3 examples.py http://127.0.0.1:8080 FILE

Reads every page of /docs as a reader sees it, and writes a list of {"page": …, "language": …, "code": …}: the requests
in each language, and the programs between them. The pages of the clients themselves are left out; the tests of each
client run those from their files.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from html.parser import HTMLParser

LANGUAGES = {"python": "from linesman import", "typescript": 'from "linesman-client"', "rust": "use linesman_client::"}
OWN = ("python", "typescript", "rust")


class Page(HTMLParser):
    """The code on a page, and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.codes: list[tuple[str, str]] = []
        self._language = ""
        self._code: list[str] | None = None
        self._is_block = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "a":
            self.links.append(named.get("href") or "")
        elif tag == "div" and named.get("class") == "pane":
            self._language = named.get("data-language") or ""
        elif tag == "pre":
            self._is_block = True
        elif tag == "code" and self._is_block:
            self._code = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "code" and self._code is not None:
            self.codes.append((self._language, "".join(self._code)))
            self._language, self._code, self._is_block = "", None, False

    def handle_data(self, data: str) -> None:
        if self._code is not None:
            self._code.append(data)


def read(url: str) -> Page:
    page = Page()
    with urllib.request.urlopen(url, timeout=60) as response:
        page.feed(response.read().decode())
    return page


def main() -> None:
    base, file = sys.argv[1:]
    paths = [link for link in read(f"{base}/docs").links if link.startswith("/docs/") and "#" not in link]
    found = []
    for path in dict.fromkeys(paths):
        if path.removeprefix("/docs/") in OWN:
            continue
        for language, code in read(base + path).codes:
            # A program outside the panes of a request is identified by its imports.
            marked = [name for name, mark in LANGUAGES.items() if mark in code]
            language = language if language in LANGUAGES else next(iter(marked), "")
            if language:
                found.append({"page": path, "language": language, "code": code})
    for language in LANGUAGES:
        count = sum(one["language"] == language for one in found)
        assert count > 30, f"only {count} programs in {language} were found"
    with open(file, "w", encoding="utf-8") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main()
