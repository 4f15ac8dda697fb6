/** The package as it is published. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createContext, runInContext } from "node:vm";

import { build } from "esbuild";
import { publint } from "publint";

import { VERSION } from "linesman-client";

import { PACKAGE, readJson, setting } from "./support.js";

const BYTES_MAX = 15_000;
const root = fileURLToPath(PACKAGE);

test("it has at most 15 KB minified, and needs no module of Node", async () => {
  const entryPoints = [fileURLToPath(new URL("dist/index.js", PACKAGE))];
  // For browsers, importing a module of Node or a package is an error.
  const { outputFiles } = await build({
    entryPoints, bundle: true, minify: true, format: "esm", platform: "browser", write: false,
  });
  const bytes = outputFiles[0]?.contents.length ?? assert.fail("there is no output");
  assert(bytes <= BYTES_MAX, `${bytes} bytes`);
  console.log(`minified: ${bytes} bytes`);
  const { dependencies = {} } = await readJson("package.json");
  assert.deepEqual(dependencies, {});
});

test("it runs with the web's interfaces alone, as in Deno, Workers and browsers", async () => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("dist/index.js", PACKAGE))],
    bundle: true, format: "iife", globalName: "linesman", platform: "neutral", write: false,
  });
  const web = {
    AbortController, AbortSignal, Blob, CompressionStream, Headers, Response, TextDecoder, TextEncoder, URL,
    URLSearchParams, clearTimeout, fetch, setTimeout,
  };
  const settings = { url: setting("LINESMAN_URL"), key: setting("LINESMAN_KEY") };
  const context = createContext({ ...web, settings, token: setting("LINESMAN_TEST_FEED_TOKEN") });
  runInContext(outputFiles[0]?.text ?? "", context);
  const read = "new linesman.Linesman(settings).events('mma', { limit: 2, max_items: 3 }).toArray()";
  assert.equal((await runInContext(read, context)).length, 3);
  const follow = "new linesman.Linesman(settings).stream({ sports: 'mma', bookmaker: 'fanduel' })";
  const changes = runInContext(follow, context);
  for await (const { cut } of changes) {
    assert.equal(cut.cursor, changes.cursor);
    break;
  }
  const push = "new linesman.Feed(settings.url, token).push([{ type: 'heartbeat', bookmaker: 'fanduel' }])";
  assert.equal((await runInContext(push, context)).rejected_total, 0);
});

test("publint has no complaint", async () => {
  const { messages } = await publint({ pkgDir: root, strict: true, pack: "npm" });
  assert.deepEqual(messages, []);
});

test("it has README, changelog, licences, code and types, and nothing else", async () => {
  const command = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const { stdout } = await promisify(execFile)("npm", command, { cwd: root });
  const files: string[] = JSON.parse(stdout)[0].files.map(({ path }: { path: string }) => path);
  const sources = (await readdir(new URL("src", PACKAGE))).map((name) => `dist/${name.replace(".ts", "")}`);
  const code = sources.flatMap((name) => [`${name}.js`, `${name}.d.ts`]);
  const others = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"];
  assert.deepEqual(files.sort(), [...code, ...others].sort());
});

test("the version is the same everywhere", async () => {
  const { version } = await readJson("package.json");
  assert.equal(VERSION, version);
  const changelog = await readFile(new URL("CHANGELOG.md", PACKAGE), "utf8");
  assert(changelog.includes(`\n## ${version}\n`));
});
