#!/usr/bin/env python3
"""An adapter for linesman in thirty lines: prints messages, reads which were rejected.

[adapters.mine]
kind = "exec"
enabled = true
terms_accepted_by = "O. Operator, 2026-11"
command = ["python3", "examples/adapter.py"]
"""
import json, sys, threading, time

def say(**message):
    print(json.dumps(message))

def listen():
    for line in sys.stdin:  # first {"hello": 1, "open": [...]}, then one line for each rejected message
        told = json.loads(line)
        if "code" in told:
            print(f"line {told['line']}: {told['code']}: {told['message']}", file=sys.stderr)

def read_upstream():  # ask your source here
    start = time.strftime("%Y-%m-%dT23:00:00Z", time.gmtime(time.time() + 86400))
    yield "b-1", "Mateo Rojas", "Declan Byrne", start, (1.65, 2.3)

threading.Thread(target=listen, daemon=True).start()
while True:
    for ref, home, away, start, prices in read_upstream():
        say(type="event", ref=ref, sport="mma", competition="UFC", commence_time=start, home=home, away=away)
        outcomes = [{"name": name, "price": price} for name, price in zip((home, away), prices)]
        say(type="odds", ref=ref, bookmaker="fanduel", market="moneyline", format="decimal", outcomes=outcomes)
    say(type="heartbeat", bookmaker="fanduel", sport="mma")
    print(flush=True)  # an empty line ends the batch
    time.sleep(20)
