"""Public parsers of the Exchange Stream on the lines of a file: lines in a second of processor time, one name a line.

The benchmark `adapters` runs it: cargo bench -p linesman-feeds --bench adapters -- --compare PYTHON
PYTHON has betfairlightweight[speed], betfair_data and betfair_parser installed. Each keeps the ladders of all markets,
in its fastest way. betfair_parser is also measured as a decoder alone, which keeps nothing: that is for information.
"""

import sys
import time

import betfair_data
from betfair_parser.cache import MarketSubscriptionCache
from betfair_parser.spec.streaming import stream_decode
from betfairlightweight.streaming.listener import StreamListener

RUN_S = 0.7


def lines_a_second(lines, work):
    work()
    begun, times = time.process_time(), 0
    while time.process_time() - begun < RUN_S:
        work()
        times += 1
    return times * lines / (time.process_time() - begun)


def main():
    path = sys.argv[1]
    with open(path, "rb") as file:
        body = file.read()
    lines = body.splitlines()
    texts = [line.decode() for line in lines]

    def lightweight():
        listener = StreamListener(max_latency=None, lightweight=True)
        listener.register_stream(2, "marketSubscription")
        for text in texts:
            listener.on_data(text)

    def data():
        return sum(1 for _ in betfair_data.File("stream.json", body))

    def parser():
        cache = MarketSubscriptionCache()
        for line in lines:
            cache.update(stream_decode(line))

    def decoder():
        for line in lines:
            stream_decode(line)

    parsers = [
        ("betfairlightweight", lightweight),
        ("betfair_parser", parser),
        ("betfair_parser-decoding-alone", decoder),
    ]
    # It takes files of the exchange's own archive, and not every line that the stream may have.
    if data() > len(lines) / 2:
        parsers.append(("betfair_data", data))
    for name, work in parsers:
        print(name, round(lines_a_second(len(lines), work)))


main()
