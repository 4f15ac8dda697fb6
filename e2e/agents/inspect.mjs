// Speaks with the API for agents through the command line of the protocol's inspector: node inspect.mjs PROGRAM
//
// Over both transports; LINESMAN_URL and LINESMAN_KEY are those of a running server with sandbox data.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const inspector = fileURLToPath(new URL("node_modules/.bin/mcp-inspector", import.meta.url));
// Its command line reads a file that is missing from the published 0.17.5; it only needs the version from it.
const folder = new URL("node_modules/@modelcontextprotocol/inspector/", import.meta.url);
copyFileSync(new URL("package.json", folder), new URL("cli/package.json", folder));
const { LINESMAN_URL: url, LINESMAN_KEY: key } = process.env;
const program = process.argv[2];
const PATIENCE_MS = 60_000;
const TOOLS = 13;

const transports = {
  stdio: ["-e", `LINESMAN_URL=${url}`, "-e", `LINESMAN_KEY=${key}`, program, "mcp"],
  http: [`${url}/mcp`, "--transport", "http", "--header", `X-API-Key: ${key}`],
};

async function ask(transport, method, ...options) {
  const args = ["--cli", ...transports[transport], "--method", method, ...options];
  const settings = { timeout: PATIENCE_MS, maxBuffer: 2 ** 26 };
  const { stdout } = await promisify(execFile)(inspector, args, settings);
  return JSON.parse(stdout);
}

const call = (transport, tool, ...values) =>
  ask(transport, "tools/call", "--tool-name", tool, ...values.flatMap((value) => ["--tool-arg", value]));

async function check(transport) {
  const { tools } = await ask(transport, "tools/list");
  assert.equal(tools.length, TOOLS);
  const events = await call(transport, "list_events", "sport_key=mma", "status=scheduled");
  assert.equal(events.isError, false);
  const event_id = events.structuredContent.answer[0].id;
  for (const { name, inputSchema } of tools) {
    const values = { sport_key: "mma", event_id };
    const wanted = inputSchema.required.map((one) => `${one}=${values[one]}`);
    const { isError, content } = await call(transport, name, ...wanted);
    assert.equal(isError, false, content[0].text);
  }
  const wrong = await call(transport, "get_odds", "sport_key=chess");
  assert.equal(JSON.parse(wrong.content[0].text).error.code, "sport_not_found");
  assert.equal((await ask(transport, "resources/list")).resources.length, 5);
  assert.equal((await ask(transport, "resources/templates/list")).resourceTemplates.length, 1);
  const uri = `linesman://events/${event_id}`;
  const { contents } = await ask(transport, "resources/read", "--uri", uri);
  assert.equal(JSON.parse(contents[0].text).id, event_id);
  assert.equal((await ask(transport, "prompts/list")).prompts.length, 3);
  const prompt = ["--prompt-name", "compare_prices", "--prompt-args", `event=${event_id}`];
  const { messages } = await ask(transport, "prompts/get", ...prompt);
  assert(messages[0].content.text.includes(event_id));
  console.log(`inspector, ${transport}: ok`);
}

// Most of the time is spent starting the inspector.
await Promise.all(Object.keys(transports).map(check));
