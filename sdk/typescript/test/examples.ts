/** Type-checks and runs the examples in the README, in the documentation and in `examples/`. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { PACKAGE, setting } from "./support.js";

const run = promisify(execFile);
const PAGES = ["README.md", "../../docs/clients/typescript.md"];

/** Compiles modules as strictly as the package itself, and returns the folder with the results. */
export async function compile(name: string, modules: Record<string, string>): Promise<string> {
  const folder = new URL(`build/${name}/`, PACKAGE);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [file, code] of Object.entries(modules)) await writeFile(new URL(`${file}.ts`, folder), code);
  const compilerOptions = { rootDir: ".", outDir: "." };
  const options = { extends: "../../tsconfig.json", compilerOptions, include: ["*.ts"], exclude: [] };
  await writeFile(new URL("tsconfig.json", folder), JSON.stringify(options));
  const tsc = fileURLToPath(new URL("node_modules/typescript/bin/tsc", PACKAGE));
  const cwd = fileURLToPath(folder);
  await run(process.execPath, [tsc, "-p", "."], { cwd }).catch(({ stdout }) => assert.fail(stdout));
  return cwd;
}

/** Runs every block marked `ts`, and returns their number. Each is a separate module, as readers copy it. */
export async function runExamples(): Promise<number> {
  const blocks: Record<string, string> = {};
  for (const page of PAGES) {
    const text = await readFile(new URL(page, PACKAGE), "utf8");
    for (const [, code] of text.matchAll(/^```ts\n(.*?)^```$/gms)) {
      blocks[`example-${Object.keys(blocks).length + 1}`] = `${code}`;
    }
  }
  const cwd = await compile("examples", blocks);
  const secrets = [setting("LINESMAN_KEY"), setting("LINESMAN_TEST_FEED_TOKEN")];
  const env = { ...process.env, FEED_TOKEN: secrets[1] };
  for (const name of Object.keys(blocks)) {
    const { stdout, stderr } = await run(process.execPath, [`${name}.js`], { cwd, env });
    for (const secret of secrets) assert(!(stdout + stderr).includes(secret));
  }
  return Object.keys(blocks).length;
}

/**
 * Runs the programs of the documentation, as its pages show them, one after the other in one process. Returns the
 * number of programs.
 */
export async function runDocs(): Promise<number> {
  const examples: { page: string; language: string; code: string }[] =
    JSON.parse(await readFile(setting("LINESMAN_TEST_EXAMPLES"), "utf8"));
  const own = examples.filter(({ language }) => language === "typescript");
  // Without an import a file would not be a module.
  const modules = own.map(({ page, code }, n) => [`docs-${n}`, `// ${page}\n${code}\nexport {};\n`] as const);
  const all = modules.map(([name]) => `await import("./${name}.js");\n`).join("");
  const cwd = await compile("docs", { ...Object.fromEntries(modules), all: `${all}export {};\n` });
  const settings = { cwd, maxBuffer: 2 ** 28 };
  const { stdout, stderr } = await run(process.execPath, ["all.js"], settings);
  for (const secret of ["LINESMAN_KEY", "FEED_TOKEN"]) assert(!(stdout + stderr).includes(setting(secret)));
  return own.length;
}
