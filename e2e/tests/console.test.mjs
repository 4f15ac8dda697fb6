// The operators' console: feeds, events and duplicates, limits, keys, the audit log, and regaining access.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  PASSWORD, becomeOperator, browser, inspect, inspectWide, service, setStage, signIn, signUp, visitor,
} from "../harness.mjs";

let olive;
let north;
let south;

const bout = (ref, home, away, hour = 3, competition = "UFC 331") => ({
  type: "event", ref, sport: "mma", competition, home, away,
  commence_time: `2027-03-06T${String(hour).padStart(2, "0")}:00:00Z`,
});
const odds = (ref, bookmaker, home, away, prices) => ({
  type: "odds", ref, bookmaker, market: "moneyline", format: "american",
  outcomes: [{ name: home, price: prices[0] }, { name: away, price: prices[1] }],
});

setStage(async () => {
  olive = await visitor(browser, service);
  await becomeOperator(olive, service);
});

const api = (path, key) => fetch(service.base + path, { headers: { "x-api-key": key } });

test("a feed is made, watched, paused and resumed", async () => {
  const { page, open, press } = olive;
  await open("/console/feeds");
  await inspect(olive, "console-feeds-none");
  for (const name of ["north", "south"]) {
    await page.getByLabel("Name").fill(name);
    await press("Create a token");
    const token = await page.locator("#secret").textContent();
    if (name === "north") await inspect(olive, "console-feed-new");
    if (name === "north") north = token;
    else south = token;
    await page.getByRole("link", { name: "Done, I saved it" }).click();
  }
  const taken = await service.push(north, [
    bout("n-1", "Bobby Vance", "Tom Reed"),
    odds("n-1", "fanduel", "Bobby Vance", "Tom Reed", [140, -165]),
    odds("n-1", "pinnacle", "Bobby Vance", "Tom Reed", [144, -170]),
    bout("n-2", "Marco Silva", "Ivan Petrov", 5),
    bout("n-3", "Jiri Prochazka", "Alex Pereira", 6),
    odds("n-404", "fanduel", "Nobody", "Else", [100, -120]),
    { type: "rumour", about: "a fight that nobody has heard of" },
    { type: "heartbeat", bookmaker: "fanduel", sport: "mma", ts: new Date(Date.now() - 420).toISOString() },
  ]);
  assert.equal((await taken.json()).rejected.length, 2);
  await service.push(south, [
    bout("s-1", "Tom Reed", "King Vance", 3, "UFC"),
    bout("s-2", "Marco Silva", "Igor Petrovich", 5),
    bout("s-3", "Procházka, J.", "Pereira, A.", 7),
    odds("s-3", "bet365", "Procházka, J.", "Pereira, A.", [120, -140]),
  ]);
  await open("/console/feeds");
  await inspect(olive, "console-feeds");
  await inspectWide(olive, "console-feeds");
  await page.getByRole("link", { name: "2 refused by north" }).click();
  await page.getByRole("heading", { name: "Samples" }).waitFor();
  await inspect(olive, "console-feed");

  await press("Pause");
  await page.getByText("The feed is paused").waitFor();
  const refused = await service.push(north, [bout("n-9", "A B", "C D")]);
  assert.equal(refused.status, 409);
  assert.equal((await refused.json()).error.code, "feed_paused");
  await open("/console/feeds/north");
  await inspect(olive, "console-feed-paused");
  await open("/console");
  await inspect(olive, "console-calls");
  assert.match(await service.run("feeds", "list"), /north .* paused /);
  await open("/console/feeds");
  await press(/Resume north/);
  await page.getByText("The feed may push again").waitFor();
  assert.equal((await service.push(north, [bout("n-1", "Bobby Vance", "Tom Reed")])).status, 200);
});

test("events are found, pairs are merged and kept apart, refs are split, and all of it is written down", async () => {
  const { page, open, press } = olive;
  await page.waitForTimeout(1500);
  await open("/console/events");
  await inspect(olive, "console-events");
  await inspectWide(olive, "console-events");
  await page.getByLabel("Search").fill("prochazka s-3");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Jiri Prochazka v Alex Pereira" }).click();
  await page.getByRole("heading", { name: "Feeds that list it" }).waitFor();
  await inspect(olive, "console-event");
  await press(/Split south:s-3/);
  await page.getByRole("heading", { name: "Split south:s-3 off this event?" }).waitFor();
  await inspect(olive, "confirm-split");
  await press("Split it off");
  await page.getByText("The ref is another event").waitFor();

  await open("/console/unsure");
  await page.getByText("Bobby Vance", { exact: true }).waitFor();
  await inspect(olive, "console-unsure");
  await inspectWide(olive, "console-unsure");
  const pairs = await page.locator(".pair").count();
  assert.ok(pairs >= 2, `${pairs} pairs`);
  await press(/merge .*Bobby Vance/);
  await page.getByRole("heading", { name: "Merge these two events?" }).waitFor();
  await inspect(olive, "confirm-merge");
  await press("Merge them");
  await page.getByText("They are one event from now on").waitFor();
  assert.equal(await page.locator(".pair").count(), pairs - 1);
  await press(/keep .*Marco Silva/);
  await page.getByText("They are different events").waitFor();
  await page.getByText("No possible duplicates").waitFor();
  await inspect(olive, "console-unsure-none");

  await open("/console/audit");
  await page.getByLabel("What was done").selectOption("events.merged");
  await press("Search");
  await page.getByRole("cell", { name: /are one/ }).first().waitFor();
  await inspect(olive, "console-audit-found");
  await open("/console/audit");
  const log = await page.locator("table").textContent();
  for (const deed of ["events.split", "events.parted", "feed.paused", "feed.resumed", "feed.created"]) {
    assert.ok(log.includes(deed), `${deed} is not in the audit log`);
  }
});

test("an account is looked up, limited, and its key revoked", async () => {
  const { page, open, press } = olive;
  const ann = await visitor(browser, service);
  await signUp(ann, "Ann Developer", "ann@example.com");
  await ann.open("/dashboard/access");
  await ann.page.getByLabel("What is the data for?").fill("A price comparison for combat sports on our site.");
  await ann.press("Ask for access");
  await open("/console/requests");
  await page.getByRole("link", { name: "ann@example.com" }).waitFor();
  await press(/Approve/);
  await ann.open("/dashboard");
  await ann.page.getByLabel(/Production/).check();
  await ann.press("Create the key");
  const key = await ann.page.locator("#secret").textContent();

  await open("/console/accounts");
  await page.getByLabel("Search").fill("ann@");
  await press("Search");
  await inspect(olive, "console-accounts-found");
  await page.getByRole("link", { name: "Ann Developer" }).click();
  await page.getByLabel("Active keys").fill("2");
  await page.getByLabel("Requests per minute").fill("30");
  await page.getByLabel("Requests per day").fill("500");
  await press("Save limits");
  await page.getByText("The limits are saved").waitFor();
  await inspect(olive, "console-account");
  await inspectWide(olive, "console-account");
  const status = await (await api("/v1/status", key)).json();
  assert.deepEqual(status.rate_limit, { burst_per_minute: 30, requests_per_day: 500 });

  await open("/console/keys?q=production");
  await inspect(olive, "console-keys-found");
  await page.getByRole("link", { name: /Revoke .* of ann@example.com/ }).click();
  await press("Revoke the key");
  await page.getByText("The key is revoked.").waitFor();
  assert.equal((await api("/v1/books", key)).status, 401);
  await ann.done();
});

test("the console works from the keyboard alone and without scripts", async () => {
  const plain = await visitor(browser, service, { javaScriptEnabled: false });
  const { page, open } = plain;
  await open("/console/feeds/north");
  await signIn(plain, "olive@example.com");
  await open("/console/feeds/north");
  const pause = page.getByRole("button", { name: "Pause" });
  await pause.focus();
  await page.keyboard.press("Enter");
  await page.getByText("The feed is paused").waitFor();
  // From the top of the page to the button, using only Tab.
  await open("/console/feeds/north");
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.getByRole("button", { name: "Resume" }).evaluate((button) => button.matches(":focus"))) break;
  }
  await page.keyboard.press("Enter");
  await page.getByText("The feed may push again").waitFor();
  await plain.done();
});

test("an operator who is locked out comes back in by the command line", async () => {
  const link = await service.run("operators", "link");
  assert.ok(link.startsWith(`${service.base}/link/`), link);
  const lost = await visitor(browser, service);
  const { page, open, press } = lost;
  await open(link);
  await inspect(lost, "operator-back");
  await page.getByLabel("Password").fill(`${PASSWORD} again`);
  await press("Set the password");
  await page.waitForURL(/\/signin/);
  await page.getByLabel("Email").fill("olive@example.com");
  await page.getByLabel("Password").fill(`${PASSWORD} again`);
  await press("Sign in");
  await page.waitForURL(/\/(console|dashboard)/);
  await open("/console");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await lost.done();
  // Earlier sessions ended with the old password.
  await olive.open("/console");
  await olive.page.waitForURL(/\/signin/);
  await olive.done();
});
