// Developers and operators, from the first page to the last.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import {
  PASSWORD, becomeOperator, browser, inspect, service, setStage, signIn, signUp, visitor,
} from "../harness.mjs";

setStage();

const api = (path, key) => fetch(service.base + path, { headers: { "x-api-key": key } });

test("a stranger signs up, makes a key, uses, rotates and revokes it", async () => {
  const ann = await visitor(browser, service);
  const { page, open, press } = ann;
  await open("/dashboard");
  await page.waitForURL(/\/signin\?next=/);
  await inspect(ann, "sign-in");
  await page.getByLabel("Email").fill("nobody@example.com");
  await page.getByLabel("Password").fill("not the password");
  await press("Sign in");
  await page.getByRole("alert").waitFor();
  await inspect(ann, "sign-in-refused");
  await open("/signup");
  await inspect(ann, "sign-up");
  await signUp(ann, "Ann Developer", "ann@example.com");
  await inspect(ann, "keys-none");

  await page.getByLabel("Name").fill("website");
  await press("Create the key");
  const secret = await page.locator("#secret").textContent();
  assert.match(secret, /^sk_test_\w{32}$/);
  await inspect(ann, "key-new");
  await press("Copy");
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  assert.equal((await api("/v1/books", secret)).status, 200);

  await page.getByRole("link", { name: "Done, I saved it" }).click();
  for (const name of ["staging", "Ann's laptop"]) {
    await page.getByLabel("Name").fill(name);
    await press("Create the key");
    await page.getByRole("link", { name: "Done, I saved it" }).click();
  }
  await inspect(ann, "keys");
  await page.getByRole("link", { name: /Manage website/ }).click();
  await inspect(ann, "key");
  await page.getByLabel("The old key keeps working for").selectOption("1h");
  await press("Rotate");
  const successor = await page.locator("#secret").textContent();
  assert.equal((await api("/v1/books", secret)).status, 200);
  assert.equal((await api("/v1/books", successor)).status, 200);
  await open("/dashboard");
  await page.getByRole("link", { name: /Manage website/ }).first().click();
  await page.getByRole("link", { name: "Revoke…" }).click();
  await inspect(ann, "key-revoke");
  await press("Revoke the key");
  await page.getByText("The key is revoked.").waitFor();
  assert.equal((await api("/v1/books", successor)).status, 401);
  await ann.done();
});

test("from the front page to a key it takes three clicks and four fields", async () => {
  const eve = await visitor(browser, service);
  const { page } = eve;
  let [clicks, fields] = [0, 0];
  const click = (locator) => (clicks++, locator.click());
  const fill = (label, text) => (fields++, page.getByLabel(label).fill(text));
  await eve.open("/");
  await click(page.getByRole("link", { name: "Get a key" }));
  await fill("Your name", "Eve Evaluator");
  await fill("Email", "eve@example.com");
  await fill("Password", PASSWORD);
  await click(page.getByRole("button", { name: "Create the account" }));
  await fill("Name", "first");
  await click(page.getByRole("button", { name: "Create the key" }));
  const secret = await page.locator("#secret").textContent();
  assert.equal((await api("/v1/sports/mma/odds?limit=1", secret)).status, 200);
  assert.deepEqual([clicks, fields], [3, 4]);
  await eve.done();
});

test("an operator comes in by the printed link and answers a request", async () => {
  const [olive, bob] = [await visitor(browser, service), await visitor(browser, service)];
  await olive.open(service.operatorLink);
  await inspect(olive, "operator-link");
  await becomeOperator(olive, service);
  await signUp(bob, "Bob Builder", "bob@example.com");
  await bob.open("/dashboard/access");
  await inspect(bob, "access");
  await bob.page.getByLabel("What is the data for?").fill(
    "A price comparison for combat sports on our site, about 2,000 requests a day.",
  );
  await bob.press("Ask for access");
  await bob.page.getByText("was sent to the operator").waitFor();

  await olive.open("/console");
  await inspect(olive, "console");
  await olive.page.getByRole("link", { name: "Requests", exact: true }).click();
  await inspect(olive, "requests");
  await olive.page.getByLabel(/Note to the developer/).fill("Welcome. Mind the daily limit.");
  await olive.press(/Approve/);
  await olive.page.getByText("The request is approved.").waitFor();

  await bob.open("/dashboard/access");
  await inspect(bob, "access-granted");
  await bob.open("/dashboard");
  await bob.page.getByLabel("Name").fill("live site");
  await bob.page.getByLabel(/Production/).check();
  await bob.page.getByLabel("combat").check();
  await bob.press("Create the key");
  const key = await bob.page.locator("#secret").textContent();
  assert.match(key, /^sk_live_/);
  assert.equal((await api("/v1/sports/golf/odds", key)).status, 403);

  for (const page of ["accounts", "keys", "feeds", "audit"]) {
    await olive.open(`/console/${page}`);
    await inspect(olive, `console-${page}`);
  }
  await olive.open("/console/accounts");
  await olive.press(/Suspend bob/);
  await olive.page.getByText("are refused with 401 at once").waitFor();
  await inspect(olive, "confirm-suspend");
  await olive.press("Suspend the account");
  await olive.page.getByText("is suspended").waitFor();
  assert.equal((await api("/v1/books", key)).status, 401);
  await olive.press(/Resume bob/);
  assert.equal((await api("/v1/books", key)).status, 200);

  await olive.open("/console");
  await olive.press("Close for maintenance");
  assert.equal((await api("/v1/books", key)).status, 200, "asking changes nothing");
  await inspect(olive, "confirm-maintenance");
  await olive.press("Close the API");
  await olive.page.getByText("Maintenance is on.").waitFor();
  assert.equal((await api("/v1/books", key)).status, 503);
  await inspect(olive, "console-maintenance");
  await olive.press("Open the service");
  assert.equal((await api("/v1/books", key)).status, 200);
  await olive.done();
  await bob.done();
});

test("the second factor is set up, asked for, and sessions are ended", async () => {
  const cleo = await visitor(browser, service);
  const { page, open, press } = cleo;
  await signUp(cleo, "Cleo", "cleo@example.com");
  await open("/dashboard/security");
  await inspect(cleo, "security");
  await page.getByRole("link", { name: "Set it up" }).click();
  await inspect(cleo, "second-factor");
  const secret = (await page.locator("#secret").textContent()).replaceAll(" ", "");
  await page.getByLabel("Code", { exact: true }).fill(code(secret, 0));
  await press("Turn it on");
  await page.getByRole("heading", { name: "Recovery codes" }).waitFor();
  await inspect(cleo, "recovery-codes");
  await press("Sign out");
  await page.waitForURL(/\/signin/);
  await signIn(cleo, "cleo@example.com");
  await page.waitForURL(/\/signin\/code/);
  await inspect(cleo, "second-factor-asked");
  await page.getByLabel("Code").fill(code(secret, 1));
  await press("Go on");
  await page.waitForURL(/\/dashboard$/);
  await open("/dashboard/security");
  await press("Sign out everywhere");
  await page.waitForURL(/\/signin/);
  await cleo.done();
});

test("everything works without scripts and from the keyboard alone", async () => {
  const dora = await visitor(browser, service, { javaScriptEnabled: false });
  const { page, open } = dora;
  await open("/signup");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className).catch(() => "skip"), "skip");
  await page.getByLabel("Your name").focus();
  await page.keyboard.type("Dora");
  await page.keyboard.press("Tab");
  await page.keyboard.type("dora@example.com");
  await page.keyboard.press("Tab");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/dashboard/);
  await page.getByLabel("Name").focus();
  await page.keyboard.press("Enter");
  assert.match(await page.locator("#secret").textContent(), /^sk_test_/);
  assert.equal(await page.getByRole("button", { name: "Copy" }).count(), 0);
  await dora.done();
});

/** The code an authenticator shows (RFC 6238), some steps from now. */
function code(secret, steps) {
  const bits = [...secret]
    .map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0"))
    .join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const sum = createHmac("sha1", key).update(counter).digest();
  const word = sum.readUInt32BE(sum[19] & 15) & 0x7fffffff;
  return String(word % 1_000_000).padStart(6, "0");
}
