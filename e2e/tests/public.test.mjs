// Public pages: the board, an event, status, docs. Each flow once, each page in every variant.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browser, inspect, service, setStage, visitor } from "../harness.mjs";

const SHOTS = process.env.SHOTS ?? "../target/screenshots";

setStage();

test("the status page shows every source and its day, for people, machines and feed readers", async () => {
  const anybody = await visitor(browser, service);
  await anybody.open("/status");
  await anybody.page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await anybody.page.locator("svg.day").count(), 0, "the sandbox is shown on request");
  await inspect(anybody, "status-live");
  await anybody.page.getByRole("link", { name: "Show the sandbox" }).click();
  await anybody.page.getByRole("heading", { name: "Sandbox" }).waitFor();
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
  // The first event with a price: an event may have none at the moment.
  const best = page.locator(".board td.best b").filter({ hasText: /\S/ }).first();
  assert.match(await best.textContent(), /^[+\u2212]\d+$/);
  await page.getByRole("link", { name: "American Football" }).click();
  await page.getByRole("link", { name: "Spread", exact: true }).click();
  await page.waitForURL(/market=spread&format=american/);
  assert.match(await page.locator(".board tr.o th .line").first().textContent(), /^[+\u2212]?\d/);
  await page.getByRole("link", { name: "UK", exact: true }).click();
  await page.waitForURL(/region=uk/);
  assert.equal(await page.locator(".board thead th", { hasText: "DraftKings" }).count(), 0);
  await inspect(anybody, "board-spread");
  await page.setViewportSize({ width: 2560, height: 1300 });
  await open("/board/mma?format=decimal");
  await page.screenshot({ path: `${SHOTS}/board-wall.png` });
  await anybody.done();
});

test("on a phone an event is a card with its three best prices, and nothing scrolls sideways", async () => {
  const anybody = await visitor(browser, service, { viewport: { width: 390, height: 844 } });
  const { page, open } = anybody;
  await open("/board/tennis");
  const best = page.locator(".board td.best", { has: page.locator("span:nth-child(3)") }).first();
  const prices = await best.locator("b").allTextContents();
  assert.equal(prices.length, 3);
  assert.deepEqual(prices, [...prices].sort((one, other) => other - one));
  assert.ok(await best.locator("span").nth(2).isVisible());
  assert.equal(await page.locator(".board td.p:visible").count(), 0);
  const box = page.locator(".board-box");
  assert.ok(await box.evaluate((own) => own.scrollWidth <= own.clientWidth && own.scrollHeight <= own.clientHeight));
  await page.screenshot({ path: `${SHOTS}/board-cards.png` });
  await anybody.done();
});

test("a late bookmaker is the last column, no name is cut, and a wide table says that it scrolls", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board/mma?format=decimal");
  const late = await page.locator(".board thead th.bk").evaluateAll((all) => all.map((own) => own.className.includes("late")));
  assert.deepEqual(late, [...late].sort());
  assert.ok(late.includes(true), "one bookmaker of the sandbox is always late");
  const cut = await page.locator(".board thead th.bk span, .board td.best span:first-child small")
    .evaluateAll((all) => all.filter((own) => own.scrollWidth > own.clientWidth + 1 && own.clientWidth > 0
      || own.scrollHeight > own.clientHeight + 1 && own.clientHeight > 0).map((own) => own.textContent));
  assert.deepEqual(cut, []);
  const bests = await page.locator(".board td.best").evaluateAll((all) => all.filter((own) => own.scrollWidth > own.clientWidth).length);
  assert.equal(bests, 0);
  await page.getByText("Scroll the table sideways to see all of them.").waitFor();
  await page.setViewportSize({ width: 2560, height: 1300 });
  await page.getByText("Scroll the table sideways to see all of them.").waitFor({ state: "hidden" });
  await anybody.done();
});

test("the browser remembers odds format and bookmakers, and an address that says its own has its way", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board/mma");
  await page.getByRole("link", { name: "Fractional", exact: true }).click();
  await page.waitForURL(/format=fractional/);
  await page.getByText("Bookmakers: all").click();
  await page.getByLabel("FanDuel").check();
  await page.getByLabel("DraftKings").check();
  await inspect(anybody, "board-bookmakers");
  await page.getByRole("button", { name: "Show these" }).click();
  await page.waitForURL(/bookmaker=draftkings&bookmaker=fanduel/);
  assert.deepEqual(await page.locator(".board thead th.bk span").allTextContents(), ["DraftKings", "FanDuel"]);
  await open("/board/tennis");
  await page.waitForURL(/format=fractional&bookmaker=draftkings&bookmaker=fanduel/);
  await page.getByText("Bookmakers: 2 chosen").waitFor();
  await open("/board/tennis?format=decimal");
  assert.ok((await page.locator(".board thead th.bk").count()) > 2);
  await page.getByText("Bookmakers: all").click();
  await page.getByRole("link", { name: "Show all" }).click();
  await open("/board/tennis");
  await page.waitForURL(/\/board\/tennis\?format=fractional$/);
  await anybody.done();
});

test("times are the reader's, and so are days; without a script they are UTC", async () => {
  const options = { locale: "en-US", timezoneId: "America/New_York" };
  const anybody = await visitor(browser, service, options);
  const { page, open } = anybody;
  await open("/board/mma");
  await page.waitForURL(/format=american/);
  const first = page.locator(".board .t time").first();
  const written = await first.evaluate((own) => new Date(own.dateTime).toLocaleTimeString("en-US", { hour: "2-digit", minute: "2-digit" }));
  assert.ok((await first.textContent()).endsWith(written), written);
  assert.match(await page.locator(".fresh .zone").textContent(), /^E[SD]T$/);
  const days = await page.locator("#day option").evaluateAll((all) => all.map((own) => own.value));
  await page.locator("#day").selectOption(days.at(-1));
  await page.waitForURL(new RegExp(`day=${days.at(-1)}`));
  const shown = await page.locator(".board tbody:visible").evaluateAll((all) => all.map((own) => {
    const at = new Date(own.dataset.start);
    return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
  }));
  assert.deepEqual([...new Set(shown)], [days.at(-1)]);
  // Another format of the same day, and the same after a reload.
  await page.getByRole("link", { name: "Decimal", exact: true }).click();
  await page.waitForURL(/format=decimal.*day=/);
  await page.waitForFunction((count) => document.querySelectorAll(".board tbody:not([hidden])").length === count, shown.length);
  const competition = await page.locator(".board tbody:visible").first().getAttribute("data-competition");
  await page.locator("#competition").selectOption(competition);
  await page.locator(".board tbody:visible").first().waitFor();
  await anybody.done();

  const plain = await visitor(browser, service, { ...options, javaScriptEnabled: false });
  await plain.open("/board/mma");
  assert.equal(await plain.page.locator(".fresh .zone").textContent(), "UTC");
  const at = plain.page.locator(".board .t time").first();
  assert.ok((await at.textContent()).endsWith((await at.getAttribute("datetime")).slice(11, 16)));
  await plain.page.locator("#competition").selectOption(competition);
  await plain.page.getByRole("button", { name: "Find" }).click();
  await plain.page.waitForURL(/competition=/);
  const each = await plain.page.locator(".board tbody").evaluateAll((all) => all.map((own) => own.dataset.competition));
  assert.deepEqual([...new Set(each)], [competition]);
  await plain.done();
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

test("value, arbitrage and middles have their prices with ages, and lead to their events", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  await open("/board/american_football?format=american");
  await page.getByRole("link", { name: "Value and arbitrage" }).click();
  await page.waitForURL(/\/board\/american_football\/value\?.*format=american/);
  await page.getByRole("heading", { level: 1, name: "Value and arbitrage" }).waitFor();
  // The sandbox always has one of each (N20).
  for (const [part, worth] of [["arbitrage", /^\d+\.\d/], ["value", /^\d+\.\d/], ["middles", /\d+\.\d/]]) {
    const rows = page.locator(`#${part} tbody tr`);
    assert.ok((await rows.count()) > 0, part);
    assert.match(await rows.first().locator("b").last().textContent(), worth, part);
    assert.match(await rows.first().locator("small").first().textContent(), /^\d+ s old$/, part);
    assert.match(await rows.first().locator("td:not(.num) b").first().textContent(), /^[+\u2212]\d+$/, part);
  }
  await inspect(anybody, "board-value");
  await page.getByRole("link", { name: "Decimal", exact: true }).click();
  await page.waitForURL(/format=decimal/);
  assert.match(await page.locator("#arbitrage tbody td:not(.num) b").first().textContent(), /^\d+\.\d+$/);
  await page.locator("#arbitrage tbody a").first().click();
  await page.waitForURL(/\/board\/event\/evt_/);
  await page.getByRole("heading", { name: "Fair odds" }).waitFor();
  await page.getByText("By method", { exact: true }).click();
  const methods = page.getByRole("region", { name: "Fair price by method" });
  assert.equal(await methods.locator("thead th").count(), 6);
  await anybody.done();
});

test("an event has its prices, their paths, margins and fair odds", async () => {
  const anybody = await visitor(browser, service);
  const { page, open } = anybody;
  // A match that is about to end may have few prices left; an upcoming one has all.
  let paths = 0;
  for (let at = 0; at < 8 && paths <= 3; at++) {
    await open("/board/tennis");
    await page.locator(".board .t a").nth(at).click();
    await page.waitForURL(/\/board\/event\/evt_/);
    await page.locator("h1").waitFor();
    paths = await page.locator(".price-chart .lines path").count();
  }
  assert.ok(paths > 3, `${paths} paths`);
  await page.getByRole("heading", { name: "Fair odds" }).waitFor();
  await page.locator(".outcomes a").nth(1).click();
  await page.waitForURL(/outcome=a/);
  await page.waitForFunction(() => document.querySelector("#live")?.dataset.state === "on");
  // Every line looks different, and is highlighted while the pointer is on its bookmaker.
  const looks = await page.locator(".price-chart .lines path").evaluateAll((all) => all.map((own) => own.getAttribute("class")));
  assert.equal(new Set(looks).size, looks.length);
  await page.locator(".books tbody tr").first().hover();
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

  // The page shows exactly the changes sent by the service; nothing else moves.
  const place = page.locator(".board thead th").last();
  const before = await place.boundingBox();
  await page.waitForFunction(
    () => document.querySelector("td.up, td.down") !== null, null, { timeout: 60_000, polling: 50 },
  );
  assert.deepEqual(await place.boundingBox(), before);
  await page.screenshot({ path: `${SHOTS}/board-moving.png` });

  // After switching to another tab and back, the page is the same and continues to update.
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
  await page.waitForFunction(() => document.querySelectorAll(".board tbody:not([hidden])").length === 1);
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
  assert.match(await page.locator(".pane:visible code").last().textContent(), /from linesman import Linesman/);
  await inspect(anybody, "docs-start");
  await open("/docs/reference/get-odds");
  assert.match(await page.locator(".pane:visible code").first().textContent(), /from linesman import Linesman/);
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
  assert.match(await plain.page.locator(".pane:visible code").first().textContent(), /linesman_client/);
  await plain.done();
});

test("a page that is not there says so", async () => {
  const anybody = await visitor(browser, service);
  await anybody.open("/dashboard/nothing");
  await anybody.page.getByRole("heading", { name: "Page not found" }).waitFor();
  await inspect(anybody, "nothing-here");
  await anybody.open("/board/chess");
  await anybody.page.getByRole("heading", { name: "Page not found" }).waitFor();
  await anybody.page.getByRole("link", { name: "Open the board" }).click();
  await anybody.page.waitForURL(/\/board\/\w+/);
  await anybody.done();
});
