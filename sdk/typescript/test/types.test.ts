/** Code that the compiler accepts. Lists request nothing until they are read, so nothing is sent here. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Linesman } from "linesman-client";
import type {
  Bout, Changes, Delta, FeedMessage, GroupedBouts, List, OddsRecord, Price, RecordList, ScoreRecord, StreamDelta,
} from "linesman-client";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

test("parameters and records have types, and catalogues of other servers fit", () => {
  const client = new Linesman({ url: "http://127.0.0.1:8080", key: "sk_test_key" });
  const records: RecordList<OddsRecord, OddsRecord[]> = client.odds("mma", { market: "moneyline", regions: ["us", "uk"] });
  const bouts: List<Bout, GroupedBouts> = client.odds("boxing", { group_by: "bout", limit: 5 });
  client.odds("curling", { market: "a_market_of_tomorrow", bookmaker: "a_new_one", event_ids: "evt_1,evt_2" });
  client.arbitrage("mma", { min_profit: 0.01, stake: 250.5 });
  client.fair("golf", { method: undefined, commence_from: "2027-01-01T00:00:00Z" });
  // @ts-expect-error: there is no such parameter
  client.odds("mma", { markets: "moneyline" });
  // @ts-expect-error: it is a number
  client.odds("mma", { limit: "ten" });
  // @ts-expect-error: records are not bouts
  const wrong: List<Bout, GroupedBouts> = client.odds("mma");
  assert(records && bouts && wrong);
});

test("changes have types", async () => {
  const client = new Linesman({ url: "http://127.0.0.1:8080", key: "sk_test_key" });
  const changes: Changes = client.stream({ sports: ["mma"], channels: "odds,scores", since: "A1", heartbeat: 5 });
  // @ts-expect-error: there is no such parameter
  client.stream({ limit: 5 });
  const read = async () => {
    const delta: Delta<ScoreRecord> = await client.scores("mma").since("A1");
    for await (const { events } of changes) {
      const record: OddsRecord | undefined = changes.state.odds.get("odd_1");
      for (const event of events) {
        if (event.event === "delta") {
          const same: Same<typeof event.data, StreamDelta> = true;
          assert(same && record && delta);
        } else if (event.event === "other") {
          const same: Same<typeof event.data, string> = true;
          assert(same);
        }
      }
    }
  };
  assert(read);
});

test("prices are numbers or fractions, messages differ by their type", () => {
  const price: Same<Price, number | string> = true;
  const message: FeedMessage = { type: "remove", ref: "b-991" };
  // @ts-expect-error: there is no such type
  const unknown: FeedMessage = { type: "price", ref: "b-991" };
  assert(price && message && unknown);
});
