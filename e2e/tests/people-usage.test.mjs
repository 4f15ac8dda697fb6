// What developers see of the use of their keys: usage, errors, quotas, the explorer, and emails.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import {
  PASSWORD, browser, inspect, service, setStage, signIn, signUp, startService, visitor,
} from "../harness.mjs";

const SHOTS = process.env.SHOTS ?? "../target/screenshots";

setStage();

async function makeKey({ page, open, press }, name) {
  await open("/dashboard");
  await page.getByLabel("Name").fill(name);
  await press("Create the key");
  return page.locator("#secret").textContent();
}

test("usage, quotas and errors are shown as they come", async () => {
  const ann = await visitor(browser, service);
  const { page, open } = ann;
  await signUp(ann, "Ann Developer", "ann@example.com");
  await open("/dashboard/usage");
  await inspect(ann, "usage-none");
  const [site, staging] = [await makeKey(ann, "website"), await makeKey(ann, "staging")];
  const ask = (path, key, agent = "odds-widget/2.1 (+https://example.com)") =>
    fetch(service.base + path, { headers: { "x-api-key": key, "user-agent": agent } });
  for (let n = 0; n < 24; n += 1) await ask("/v1/sports/mma/odds?limit=5", site);
  for (const sport of ["golf", "tennis", "boxing"]) await ask(`/v1/sports/${sport}/scores`, site);
  await ask("/v1/books", staging, "<img src=x onerror=alert(1)> python-requests/2.32.3");
  const { headers } = await ask("/v1/books", staging);
  await fetch(`${service.base}/v1/books`, {
    headers: { "x-api-key": staging, "if-none-match": headers.get("etag") },
  });
  const refused = await ask("/v1/sports/mma/odds?limit=5000", site);
  await ask("/v1/sports/cricket/odds", site);
  for (let n = 0; n < 6; n += 1) await ask("/v1/sports/mma/odds?regons=us&api_key=hidden", staging);
  for (let n = 0; n < 3; n += 1) {
    await fetch(`${service.base}/v1/books`, {
      headers: { "x-api-key": staging, "x-sandbox-fault": n < 2 ? "rate_limited" : "internal" },
    });
  }
  await open("/dashboard/usage");
  assert.equal(await page.locator(".bars g").count() >= 1, true);
  await page.getByText(refused.headers.get("x-request-id")).waitFor();
  assert.equal(await page.getByText("hidden", { exact: false }).count(), 0, "no key is shown");
  assert.equal(await page.locator("img[src=x]").count(), 0);
  await inspect(ann, "usage");
  await page.getByLabel("Key").selectOption({ label: (await page.locator("option").allTextContents()).find((one) => one.startsWith("website")) });
  await page.waitForURL(/key=key_/);
  await page.getByText("List bookmakers").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "30 days" }).click();
  await page.waitForURL(/range=30d&key=key_/);
  await page.getByText("Show as table").click();
  await inspect(ann, "usage-month");
  await page.setViewportSize({ width: 2560, height: 1300 });
  await page.screenshot({ path: `${SHOTS}/usage-wall.png` });
  await open("/dashboard");
  await page.getByText("odds-widget/2.1").first().waitFor();
  await inspect(ann, "keys-used");
  await page.getByRole("link", { name: /Manage website/ }).click();
  await inspect(ann, "key-used");
  await page.getByRole("link", { name: "Revoke…" }).click();
  await page.getByText("odds-widget/2.1").waitFor();
  await inspect(ann, "key-used-revoke");
  await ann.done();
});

test("the explorer shows the lines, runs them and explains refusals", async () => {
  const eve = await visitor(browser, service);
  const { page, open, press } = eve;
  await signUp(eve, "Eve Explorer", "eve@example.com");
  await open("/dashboard/explore");
  await page.getByText("you need a sandbox key").waitFor();
  await inspect(eve, "explore-keyless");
  const key = await makeKey(eve, "try out");
  await page.getByRole("link", { name: "Try it in the explorer" }).click();
  await page.getByRole("link", { name: "Get odds" }).waitFor();
  await inspect(eve, "explore");
  // The code lines follow the form without a click.
  await page.getByLabel("odds_format").selectOption("decimal");
  await page.locator("#line-curl", { hasText: "odds_format=decimal" }).waitFor();
  const line = await page.locator("#line-curl").textContent();
  const url = line.match(/'(http[^']+)'/)[1];
  assert.equal((await fetch(url, { headers: { "x-api-key": key } })).status, 200, "the line is right");
  await press("Run it");
  await page.locator(".status-code.good").waitFor();
  await page.getByText("headers").first().click();
  await inspect(eve, "explore-answer");
  await page.getByLabel("limit", { exact: true }).fill("501");
  await press("Run it");
  await page.locator(".status-code.bad").waitFor();
  assert.equal(await page.getByLabel("limit", { exact: true }).getAttribute("aria-invalid"), "true");
  await inspect(eve, "explore-refused");
  await page.getByRole("link", { name: "invalid_parameter" }).click();
  await page.waitForURL(/\/docs\/errors#error-invalid_parameter/);
  for (const endpoint of ["list_events", "get_event", "get_status"]) {
    await open(`/dashboard/explore?endpoint=${endpoint}`);
    await press("Run it");
    await page.locator(".status-code.good").waitFor();
  }
  await inspect(eve, "explore-status");
  await page.setViewportSize({ width: 2560, height: 1300 });
  await page.screenshot({ path: `${SHOTS}/explore-wall.png` });
  await eve.done();
});

test("the explorer works without scripts and from the keyboard alone", async () => {
  const dora = await visitor(browser, service, { javaScriptEnabled: false });
  const { page, open } = dora;
  await signUp(dora, "Dora", "dora@example.com");
  await makeKey(dora, "plain");
  await open("/dashboard/explore?endpoint=get_scores");
  await page.getByLabel("sport_key").selectOption("golf");
  await page.getByRole("button", { name: "Show code" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("#line-python", { hasText: 'client.scores("golf", limit=2' }).waitFor();
  await page.getByRole("button", { name: "Run it" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".status-code.good").waitFor();
  await open("/dashboard/usage?range=7d");
  await page.getByText("Get scores").waitFor();
  await dora.done();
});

/** A mail server of a few lines; `next` waits for the next letter's text. */
async function startMail() {
  const [letters, waiting] = [[], []];
  const server = createServer((socket) => {
    let [held, data] = ["", null];
    socket.write("220 test\r\n");
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      held += bytes;
      for (let end = held.indexOf("\r\n"); end >= 0; end = held.indexOf("\r\n")) {
        const line = held.slice(0, end);
        held = held.slice(end + 2);
        if (data === null) {
          if (/^DATA/i.test(line)) data = [];
          socket.write(/^DATA/i.test(line) ? "354 go on\r\n" : /^QUIT/i.test(line) ? "221 bye\r\n" : "250 ok\r\n");
        } else if (line === ".") {
          const letter = data.join("\n").replace(/=\n/g, "").replace(/=3D/g, "=");
          (waiting.shift() ?? ((one) => letters.push(one)))(letter);
          data = null;
          socket.write("250 taken\r\n");
        } else data.push(line);
      }
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: server.address().port,
    next: () => new Promise((resolve) => letters.length ? resolve(letters.shift()) : waiting.push(resolve)),
    stop: () => server.close(),
  };
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("an address is confirmed and a forgotten password set anew by mail", async () => {
  const mail = await startMail();
  const listen = `127.0.0.1:${await freePort()}`;
  const mailing = await startService({
    LINESMAN_MAIL__URL: `smtp://127.0.0.1:${mail.port}`,
    LINESMAN_MAIL__FROM: "Linesman <odds@example.com>",
    LINESMAN_DASHBOARD__PUBLIC_URL: `http://${listen}`,
  }, listen);
  const finn = await visitor(browser, mailing);
  const { page, open, press } = finn;
  await open("/signup");
  await page.getByLabel("Your name").fill("Finn");
  await page.getByLabel("Email").fill("finn@example.com");
  await page.getByLabel("Password").fill(PASSWORD);
  await press("Create the account");
  await page.getByText("Check your email").waitFor();
  await inspect(finn, "sign-up-mail");
  const confirmation = await mail.next();
  assert.match(confirmation, /Subject: Confirm your address/);
  await open(confirmation.match(/http:\S+\/link\/\S+/)[0]);
  await inspect(finn, "confirm");
  await press("Confirm finn@example.com");
  await page.getByText("The address is confirmed.").waitFor();
  await page.getByRole("link", { name: "Set a new one by email" }).click();
  await inspect(finn, "forgot");
  await page.getByLabel("Email").fill("finn@example.com");
  await press("Send the email");
  await page.getByText("If the address has an account").waitFor();
  const reset = await mail.next();
  await open(reset.match(/http:\S+\/link\/\S+/)[0]);
  await page.getByLabel("New password").fill(PASSWORD);
  await press("Set the password");
  await page.getByText("The password is set.").waitFor();
  await signIn(finn, "finn@example.com");
  await page.waitForURL(/\/dashboard$/);
  await finn.done();
  await mailing.stop();
  mail.stop();
});
