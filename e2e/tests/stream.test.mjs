// A browser's EventSource follows a stream, and continues by itself after the program was killed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { browser, service, setStage } from "../harness.mjs";

/** Enough for a busy machine. */
const PATIENCE = { timeout: 120_000 };

setStage();

/** All pages of a list, as of an instant. */
async function list(at) {
  const records = {};
  const until = Date.now() + PATIENCE.timeout;
  let path = `/v1/sports/mma/odds?limit=500&as_of=${at}`;
  while (path) {
    const answer = await fetch(service.base + path, { headers: { "X-API-Key": service.key } });
    // Rebuilding past publications is limited per node and per key, so clients retry.
    if (answer.status === 503 && Date.now() < until) {
      await answer.text();
      await sleep(200);
      continue;
    }
    assert.equal(answer.status, 200);
    for (const record of await answer.json()) records[record.id] = record;
    path = answer.headers.get("link")?.match(/<([^>]*)>; rel="next"/)?.[1];
  }
  return records;
}

/** In the page: applies the events, and stores the records at each cut. */
function follow(key) {
  const seen = { hellos: [], cuts: [], resets: 0, known: {}, last: null };
  window.seen = seen;
  const source = new EventSource(`/v1/stream?sports=mma&freshness=records&heartbeat=5&api_key=${key}`);
  const on = (name, take) => source.addEventListener(name, (event) => take(JSON.parse(event.data), event.lastEventId));
  on("hello", (data) => {
    seen.hellos.push(data.resumed);
    if (!data.resumed) seen.known = {};
  });
  on("reset", () => (seen.resets += 1));
  on("snapshot", (data) => data.records.forEach((record) => (seen.known[record.id] = record)));
  on("delta", (data) => {
    data.upserts.forEach((record) => (seen.known[record.id] = record));
    data.removed.forEach((gone) => delete seen.known[gone.id]);
  });
  on("fresh", (data) => {
    for (const [at, ids] of Object.entries(data.touched)) ids.forEach((id) => (seen.known[id].last_update = at));
  });
  on("cut", (data, id) => {
    seen.cuts.push(id);
    seen.last = { at: data.at, known: JSON.stringify(seen.known) };
  });
}

test("an EventSource misses nothing and repeats nothing through a restart", async () => {
  const page = await (await browser.newContext()).newPage();
  // A page of the service without its own policy, so that it may connect like any page of this origin.
  await page.goto(`${service.base}/status.json`);
  await page.evaluate(follow, service.key);
  const check = async () => {
    const { at, known } = await page.evaluate(() => window.seen.last);
    assert.deepEqual(JSON.parse(known), await list(at));
  };
  await page.waitForFunction(() => window.seen.cuts.length >= 2, undefined, PATIENCE);
  await check();
  await service.restart();
  const before = await page.evaluate(() => window.seen.cuts.length);
  const hasGoneOn = (cuts) => window.seen.hellos.length > 1 && window.seen.cuts.length >= cuts + 2;
  await page.waitForFunction(hasGoneOn, before, PATIENCE);
  await check();
  const { hellos, cuts, resets } = await page.evaluate(() => window.seen);
  assert.deepEqual([hellos[0], ...new Set(hellos.slice(1)), resets], [false, true, 0]);
  assert.equal(new Set(cuts).size, cuts.length, "a cut came twice");
  await page.context().close();
});
