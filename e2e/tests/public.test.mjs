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

test("the board shows prices, marks the best, finds events and renews itself", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board");
  await page.waitForURL(/\/board\/\w+$/);
  const cells = page.locator(".board .p b");
  assert.ok((await cells.count()) > 20);
  assert.ok((await page.locator(".board .best").count()) > 5);
  assert.equal(await page.locator(".board .best.stale").count(), 0);
  await inspect(anybody, "board");
  await page.getByRole("link", { name: "american", exact: true }).click();
  await page.waitForURL(/format=american/);
  assert.match(await cells.first().textContent(), /^[+-]\d+$/);
  await page.getByRole("link", { name: "NFL" }).or(page.getByRole("link", { name: /football/i })).first().click();
  await page.getByRole("link", { name: "spread", exact: true }).click();
  await inspect(anybody, "board-spread");
  await page.setViewportSize({ width: 2560, height: 1300 });
  await page.screenshot({ path: `${process.env.LINESMAN_SHOTS ?? "../target/screenshots"}/board-wall.png` });

  // A cell that shows something else is set right with the next prices.
  const cell = page.locator(".board td.p[id] b").first();
  const right = await cell.textContent();
  await cell.evaluate((shown) => { shown.textContent = "+1"; });
  await page.waitForFunction(
    ([text]) => document.querySelector(".board td.p[id] b").textContent !== text, ["+1"], { timeout: 15_000 },
  );
  assert.match(right, /^[+-]\d+$/);

  const title = await page.locator("tbody[data-event]").last().getAttribute("data-event");
  await page.getByLabel("Find an event").fill(title);
  assert.equal(await page.locator("tbody[data-event]:visible").count(), 1);
  await anybody.done();
});

test("a page that is not there says so", async () => {
  const anybody = await visitor(browser, service);
  await anybody.open("/dashboard/nothing");
  await anybody.page.getByRole("heading", { name: "Nothing here" }).waitFor();
  await inspect(anybody, "nothing-here");
  await anybody.done();
});
