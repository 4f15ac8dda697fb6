// A running service, a browser, and the rules for every page: no message in the console, no request to other hosts, and
// no violation found by axe, in light and dark, on a phone and on a desktop.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PROGRAM = process.env.LINESMAN ?? "../target/debug/linesman";
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SHOTS = process.env.SHOTS ?? "../target/screenshots";
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const SIZES = { phone: { width: 360, height: 780 }, desk: { width: 1280, height: 900 } };

export const PASSWORD = "correct horse battery";

/** Shared by the tests of a file: a running service and a browser. Each file is a separate process. */
export let service;
export let browser;

/** Starts a service and a browser before the file's first test and ends them after its last. */
export function setStage(prepare = async () => {}) {
  before(async () => {
    service = await startService();
    browser = await startBrowser();
    await prepare();
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });
}

/** Starts the program on its own folder and reads its output. */
export async function startService(environment = {}, listen = "127.0.0.1:0") {
  const data = mkdtempSync(join(tmpdir(), "linesman-e2e-"));
  let { child, said } = await startProgram(data, environment, listen);
  const base = said.match(/Linesman is at (\S+)/)[1];
  const end = async (signal) => {
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill(signal);
    await ended;
  };
  return {
    base,
    key: said.match(/sk_test_\w+/)[0],
    operatorLink: said.match(/\S+\/link\/\S+/)[0],
    /** Output of a command on the folder of this service. */
    async run(...words) {
      const { stdout } = await promisify(execFile)(PROGRAM, ["--data", join(data, "data"), ...words], { cwd: data });
      return stdout.trim();
    },
    /** Pushes messages with a feed's token. */
    async push(token, messages) {
      return fetch(`${base}/ingest/v1/messages`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson" },
        body: messages.map((message) => JSON.stringify(message) + "\n").join(""),
      });
    },
    /** Kills the program and starts it again, at the same address and on the same folder. */
    async restart() {
      await end("SIGKILL");
      ({ child, said } = await startProgram(data, environment, new URL(base).host));
    },
    async stop() {
      await end("SIGTERM");
      rmSync(data, { recursive: true });
    },
  };
}

/** Starts the program on a folder, and waits until it has printed its address. */
async function startProgram(data, environment, listen) {
  const child = spawn(PROGRAM, ["--data", join(data, "data"), "serve", "--listen", listen], {
    env: {
      ...process.env,
      LINESMAN_SERVER__OPS_LISTEN: "127.0.0.1:0",
      LINESMAN_MARKET__REFRESH_INTERVAL: "1s",
      // A busy machine must not cause refusals here.
      LINESMAN_SERVER__SHED_AFTER: "1m",
      ...environment,
    },
    cwd: data,
  });
  let [said, troubled] = ["", ""];
  child.stderr.on("data", (bytes) => { troubled += bytes; });
  await new Promise((resolve, reject) => {
    child.on("exit", () => reject(new Error(`the service ended:\n${said}\n${troubled}`)));
    child.stdout.on("data", (bytes) => {
      said += bytes;
      if (said.includes("Ingest")) resolve();
    });
  });
  return { child, said };
}

async function startBrowser() {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** A visitor with a separate browser; `complaints` collects violations. */
export async function visitor(browser, service, options = {}) {
  const context = await browser.newContext({
    viewport: SIZES.desk,
    // Readers in the United States get American odds on the board; tests of that set the locale.
    locale: "en-GB",
    permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  const page = await context.newPage();
  const complaints = [];
  // Chromium reports refused requests in the console; all other messages are faults.
  const expected = /Failed to load resource: the server responded with a status of (400|403|404|405|429)/;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !expected.test(message.text())) {
      complaints.push(`console: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(service.base)) complaints.push(`request to ${request.url()}`);
  });
  return {
    page,
    context,
    open: (path) => page.goto(path.startsWith("http") ? path : service.base + path),
    press: (name) => page.getByRole("button", { name }).first().click(),
    async done() {
      assert.deepEqual(complaints, []);
      await context.close();
    },
  };
}

/** Inspects the current page in every variant: checks it with axe, takes a screenshot. */
export async function inspect({ page }, name, { fullPage = true } = {}) {
  mkdirSync(SHOTS, { recursive: true });
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      // After a jump the sticky header covers content, which axe reports as too small a target.
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: join(SHOTS, `${name}-${size}-${colorScheme}.png`), fullPage });
      const wide = await page.evaluate(() => {
        const over = document.documentElement.scrollWidth - innerWidth;
        const sticks = [...document.querySelectorAll("main *")].find((part) => part.getBoundingClientRect().right > innerWidth);
        return over > 0 ? `${over} px too wide: ${sticks?.outerHTML.slice(0, 200)}` : "";
      });
      assert.equal(wide, "", `${name} on a ${size}`);
      const { violations } = await check(page);
      const told = violations.map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.html).join(" ")}`);
      assert.deepEqual(told, [], `${name}, ${size}, ${colorScheme}`);
    }
  }
  await page.setViewportSize(SIZES.desk);
  await page.emulateMedia({ colorScheme: "light" });
}

/** The page on a screen of 2560 px: nothing overflows; takes a screenshot. */
export async function inspectWide({ page }, name) {
  await page.setViewportSize({ width: 2560, height: 1440 });
  await page.screenshot({ path: join(SHOTS, `${name}-wide-light.png`) });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
  await page.setViewportSize(SIZES.desk);
}

/** Injects axe past the page's content security policy, which forbids foreign scripts. */
async function check(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  const { result } = await session.send("Runtime.evaluate", {
    expression: `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then(JSON.stringify)`,
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  return JSON.parse(result.value);
}

export async function signUp({ page, open, press }, name, email) {
  await open("/signup");
  await page.getByLabel("Your name").fill(name);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await press("Create the account");
  await page.waitForURL(/\/dashboard/);
}

export async function signIn({ page, press }, email) {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await press("Sign in");
  await page.waitForURL(/\/(dashboard|console|signin\/code)/);
}

export async function becomeOperator(who, service) {
  const { page, open, press } = who;
  await open(service.operatorLink);
  await page.getByLabel("Your name").fill("Olive Operator");
  await page.getByLabel("Email").fill("olive@example.com");
  await page.getByLabel("Password").fill(PASSWORD);
  await press("Create the account");
  await page.waitForURL(/\/console$/);
}
