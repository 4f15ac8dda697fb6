/** `examples/odds-page` shows the sandbox, and never shows its key. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { Linesman } from "linesman-client";

import { compile } from "./examples.js";
import { PACKAGE, closedAddress, setting } from "./support.js";

const source = await readFile(new URL("../../examples/odds-page/odds-page.ts", PACKAGE), "utf8");
const folder = await compile("odds-page", { "odds-page": source });

/** Starts the page and calls `visit` with its address. */
async function serve(env: Record<string, string>, visit: (address: string) => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, ["odds-page.js"], {
    cwd: folder,
    env: { ...process.env, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const [address] = await once(createInterface(child.stdout), "line");
    await visit(address);
  } finally {
    child.kill();
  }
}

test("the page has a table of best prices for each sport", async () => {
  assert(source.split("\n").length <= 80);
  await serve({}, async (address) => {
    for (const sport of await new Linesman().sports().toArray()) {
      const answer = await fetch(`${address}/${sport.key}`);
      const html = await answer.text();
      assert.equal(answer.status, 200, html);
      assert(html.includes(`<h1>${sport.title}</h1>`));
      assert.match(html, /<td>[^<]+ <b>[+-]\d+<\/b> <small>\w+<\/small><\/td>/, sport.key);
      assert(!html.includes(setting("LINESMAN_KEY")));
    }
  });
});

test("the page says why it has no odds", async () => {
  await serve({ LINESMAN_URL: await closedAddress(), LINESMAN_KEY: "sk_test_wrong" }, async (address) => {
    const answer = await fetch(address);
    assert.equal(answer.status, 502);
    assert.match(await answer.text(), /no answer from http/);
  });
});
