// Pages for everybody: the board, an event, status, docs. Each flow once, each page in every dress.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browser, inspect, service, setStage, visitor } from "../harness.mjs";

const SHOTS = process.env.LINESMAN_SHOTS ?? "../target/screenshots";

setStage();

test("the status page shows every source and its day, for people, machines and feed readers", async () => {
  const anybody = await visitor(browser, service);
  await anybody.open("/status");
  await anybody.page.getByRole("heading", { level: 1 }).waitFor();
  assert.ok((await anybody.page.locator("svg.day").count()) > 20);
  await inspect(anybody, "status");
  const status = await (await fetch(`${service.base}/status.json`)).json();
  assert.equal(status.status, "operational");
  assert.equal(status.sandbox[0].sources[0].last_24h.length, 96);
  const feed = await fetch(`${service.base}/status.atom`);
  assert.match(await feed.text(), /<feed xmlns="http:\/\/www\.w3\.org\/2005\/Atom">/);
  await anybody.done();
});

test("the board shows prices, marks the best, and switches market, format, region and sport", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board");
  await page.waitForURL(/\/board\/\w+$/);
  assert.ok((await page.locator(".board td.p").count()) > 100);
  assert.ok((await page.locator(".board td.b").count()) > 5);
  await inspect(anybody, "board");
  await page.getByRole("link", { name: "American", exact: true }).click();
  await page.waitForURL(/format=american/);
  // Of the first that has one: an event may have no price at the moment.
  const best = page.locator(".board td.best b").filter({ hasText: /\S/ }).first();
  assert.match(await best.textContent(), /^[+\u2212]\d+$/);
  await page.getByRole("link", { name: "American Football" }).click();
  await page.getByRole("link", { name: "Spread", exact: true }).click();
  await page.waitForURL(/market=spread&format=american/);
  assert.match(await page.locator(".board td.p i").first().textContent(), /^[+\u2212]?\d/);
  await page.getByRole("link", { name: "UK", exact: true }).click();
  await page.waitForURL(/region=uk/);
  assert.equal(await page.locator(".board thead th", { hasText: "DraftKings" }).count(), 0);
  await inspect(anybody, "board-spread");
  await page.setViewportSize({ width: 2560, height: 1300 });
  await open("/board/mma");
  await page.screenshot({ path: `${SHOTS}/board-wall.png` });
  await anybody.done();
});

test("golf with its long fields is readable, and leads to all players", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board/golf");
  await inspect(anybody, "board-golf");
  await page.locator(".board .m a").first().click();
  await page.waitForURL(/\/board\/event\/evt_/);
  assert.ok((await page.locator(".board tr.o").count()) > 20);
  await inspect(anybody, "event-golf");
  await anybody.done();
});

test("an event has its prices, their paths, margins and fair chances", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  // A match that is about to end may have hardly any prices left; one of the next has them.
  let paths = 0;
  for (let at = 0; at < 8 && paths <= 3; at++) {
    await open("/board/tennis");
    await page.locator(".board .t a").nth(at).click();
    await page.waitForURL(/\/board\/event\/evt_/);
    await page.locator("h1").waitFor();
    paths = await page.locator(".price-chart .lines path").count();
  }
  assert.ok(paths > 3, `${paths} paths`);
  await page.getByRole("heading", { name: "Fair chances" }).waitFor();
  await page.locator(".outcomes a").nth(1).click();
  await page.waitForURL(/outcome=a/);
  await page.waitForFunction(() => document.querySelector("#live")?.dataset.state === "on");
  await inspect(anybody, "event");
  await page.getByRole("link", { name: "Tennis" }).first().click();
  await page.waitForURL(/\/board\/tennis/);
  await anybody.done();
});

test("the board renews itself: prices that moved, rows that came, a table that is another", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board/tennis");
  await page.waitForFunction(() => document.querySelector("#live").dataset.state === "on");
  const cut = await page.locator("#cut").textContent();
  await page.waitForFunction((old) => document.querySelector("#cut").textContent !== old, cut);

  // What the service says is put in as it says; nothing else on the page moves.
  const place = page.locator(".board thead th").last();
  const before = await place.boundingBox();
  await page.waitForFunction(
    () => document.querySelector("td.up, td.down") !== null, null, { timeout: 60_000, polling: 50 },
  );
  assert.deepEqual(await place.boundingBox(), before);
  await page.screenshot({ path: `${SHOTS}/board-moving.png` });

  // A reader who looks elsewhere and comes back is on the same page, and it goes on.
  await page.evaluate(() => { document.title = "still the same page"; });
  await page.evaluate(() => { dispatchEvent(new Event("pagehide")); dispatchEvent(new Event("pageshow")); });
  const then = await page.locator("#cut").textContent();
  await page.waitForFunction((old) => document.querySelector("#cut").textContent !== old, then);
  assert.equal(await page.title(), "still the same page");
  await anybody.done();
});

test("an event is found while typing, by the keyboard alone, and without a script", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board/mma");
  const name = await page.locator(".board tr.o th").last().textContent();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const field = page.getByLabel("Find an event");
  for (let steps = 0; steps < 40 && !(await field.evaluate((own) => own === document.activeElement)); steps += 1) {
    await page.keyboard.press("Tab");
  }
  await page.keyboard.type(name);
  assert.equal(await page.locator(".board tbody:visible").count(), 1);
  await page.keyboard.press("Tab");
  const box = await page.evaluate(() => document.activeElement.className);
  assert.match(box, /board-box/, "the table can be scrolled with the keyboard");
  await anybody.done();

  const plain = await visitor(browser, service, { javaScriptEnabled: false });
  await plain.open("/board/mma");
  await plain.page.getByLabel("Find an event").fill(name);
  await plain.page.getByRole("button", { name: "Find" }).click();
  await plain.page.waitForURL(/q=/);
  assert.equal(await plain.page.locator(".board tbody").count(), 1);
  await plain.page.locator(".board .t a").click();
  await plain.page.getByRole("heading", { name: "Bookmakers" }).waitFor();
  await plain.done();
});

test("the docs are pages with a place in the navigation, a search and tabs that are remembered", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/docs");
  await page.getByRole("heading", { name: "Documentation", exact: true }).waitFor();
  await inspect(anybody, "docs");
  await page.getByRole("link", { name: "Get started" }).click();
  await page.getByRole("heading", { level: 1, name: "Getting started" }).waitFor();
  assert.match(await page.locator(".pane:visible code").first().textContent(), new RegExp(`^curl [^]*${service.base}/`));
  await page.locator(".sample label", { hasText: "Python" }).first().click();
  assert.match(await page.locator(".pane:visible code").last().textContent(), /urllib/);
  await inspect(anybody, "docs-start");
  await open("/docs/reference/get-odds");
  assert.match(await page.locator(".pane:visible code").first().textContent(), /urllib/);
  assert.equal(await page.locator(".docs-nav [aria-current=page]").textContent(), "Get odds");
  await inspect(anybody, "docs-reference");
  await page.getByLabel("Search the documentation").fill("quota exceeded");
  await page.locator(".docs-found a", { hasText: "quota_exceeded" }).first().click();
  await page.waitForURL(/\/docs\/errors#error-quota_exceeded$/);
  assert.ok(await page.locator("#error-quota_exceeded").isVisible());
  for (const [path, name] of [["migration", "Migrate from The Odds API v4"], ["configuration", "Configuration reference"]]) {
    await open(`/docs/${path}`);
    await page.getByRole("heading", { level: 1, name }).waitFor();
    await inspect(anybody, `docs-${path}`, { fullPage: false });
  }
  await anybody.done();
});

test("without a script the docs have every page in the navigation and every language of an example", async () => {
  const plain = await visitor(browser, service, { javaScriptEnabled: false });
  await plain.open("/docs/polling");
  assert.ok((await plain.page.locator(".docs-nav a").count()) > 40);
  assert.equal(await plain.page.locator(".docs-search").isVisible(), false);
  await plain.page.locator(".sample label", { hasText: "Rust" }).first().click();
  assert.match(await plain.page.locator(".pane:visible code").first().textContent(), /reqwest/);
  await plain.done();
});

test("a page that is not there says so", async () => {
  const anybody = await visitor(browser, service);
  await anybody.open("/dashboard/nothing");
  await anybody.page.getByRole("heading", { name: "Page not found" }).waitFor();
  await inspect(anybody, "nothing-here");
  await anybody.done();
});
