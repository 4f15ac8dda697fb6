// Pages for everybody.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, startBrowser, startService, visitor } from "../harness.mjs";

let service;
let browser;

before(async () => {
  service = await startService();
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await service?.stop();
});

test("the status page shows every source, for people, machines and feed readers", async () => {
  const anybody = await visitor(browser, service);
  await anybody.open("/status");
  await anybody.page.getByRole("heading", { level: 1 }).waitFor();
  await inspect(anybody, "status");
  const status = await (await fetch(`${service.base}/status.json`)).json();
  assert.equal(status.status, "operational");
  assert.ok(status.sandbox.length > 0);
  const feed = await fetch(`${service.base}/status.atom`);
  assert.match(await feed.text(), /<feed xmlns="http:\/\/www\.w3\.org\/2005\/Atom">/);
  await anybody.done();
});

test("a page that is not there says so", async () => {
  const anybody = await visitor(browser, service);
  await anybody.open("/dashboard/nothing");
  await anybody.page.getByRole("heading", { name: "Nothing here" }).waitFor();
  await inspect(anybody, "nothing-here");
  await anybody.done();
});
