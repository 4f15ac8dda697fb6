#!/usr/bin/env python3
"""A million changed prices through ingest, then kill -9 and a new start.

    cargo build --release && python3 load/million.py target/release/linesman [LINES]

Prints how many lines a second ingest took with the log durable (one client, bodies of 20,000 lines), and how long the
next start took to /readyz. Everything runs on this machine, on a data folder of its own that is removed afterwards.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

EVENTS = 2_000
BATCH = 20_000
BOOKMAKERS = "fanduel draftkings betmgm caesars bet365 pinnacle unibet bovada betrivers fanatics".split()


class Service:
    """The program on a folder of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = dict(
            os.environ, LINESMAN_SANDBOX__ENABLED="false", LINESMAN_SERVER__OPS_LISTEN="127.0.0.1:0"
        )
        begun = time.monotonic()
        command = [program, "--data", folder, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment, text=True
        )
        self.base = next(found[0] for line in self.process.stdout if (found := re.findall(r"http://[\d.:]+", line)))
        while not self.is_ready():
            time.sleep(0.005)
        self.start_seconds = time.monotonic() - begun

    def is_ready(self):
        try:
            return urllib.request.urlopen(self.base + "/readyz").status == 200
        except urllib.error.URLError:
            return False

    def run(self, *words):
        command = [self.program, "--data", self.folder, *words]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, check=True).stdout.strip()

    def push(self, token, lines):
        request = urllib.request.Request(
            self.base + "/ingest/v1/messages",
            data="\n".join(lines).encode(),
            headers={"Authorization": "Bearer " + token},
        )
        receipt = json.loads(urllib.request.urlopen(request).read())
        if receipt["rejected"]:
            sys.exit(f"a line was refused: {receipt['rejected'][0]}")
        return receipt

    def end(self, by):
        self.process.send_signal(by)
        self.process.wait()


def event(number):
    return json.dumps({
        "type": "event", "ref": f"e{number}", "sport": "tennis", "competition": "Cup",
        "commence_time": "2026-01-01T10:00:00Z", "home": f"Home P{number}", "away": f"Away Q{number}",
    })


def odds(number):
    event, round_of_all = number % EVENTS, number // EVENTS
    bookmaker, move = BOOKMAKERS[round_of_all % len(BOOKMAKERS)], round_of_all // len(BOOKMAKERS)
    return (
        f'{{"type":"odds","ref":"e{event}","bookmaker":"{bookmaker}","market":"moneyline","format":"american","outcomes":'
        f'[{{"name":"Home P{event}","price":{101 + move}}},{{"name":"Away Q{event}","price":{-110 - move}}}]}}'
    )


def main():
    program = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    folder = tempfile.mkdtemp()
    try:
        service = Service(program, folder)
        token = service.run("feeds", "create", "load")
        service.push(token, [event(number) for number in range(EVENTS)])
        seconds, accepted = 0.0, 0
        for first in range(0, count, BATCH):
            lines = [odds(number) for number in range(first, min(first + BATCH, count))]
            begun = time.monotonic()
            accepted += service.push(token, lines)["accepted"]
            seconds += time.monotonic() - begun
        service.end(signal.SIGKILL)
        print(f"{accepted} changes accepted, {count / seconds:,.0f} lines a second with the log durable")
        again = Service(program, folder)
        print(f"start after kill -9: {again.start_seconds:.2f} s to /readyz")
        again.end(signal.SIGTERM)
    finally:
        shutil.rmtree(folder)


main()
