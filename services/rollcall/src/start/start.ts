import { createRequire, enableCompileCache } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { homeDirectory } from "@rollcall/process/own-directories";
import { removeBundledLibraries } from "./bundled-libraries.ts";
import { compiledCodeDirectory } from "./compiled-code.ts";
import { useLightHeaders } from "./light-headers.ts";
import { nodeProblem } from "./required-node.ts";
import { isForServers } from "./server-words.ts";

/**
 * Start a program next to this file. The servers' verbs need the servers' program. All other verbs run in the command
 * line's program, a single script whose compiled code is cached.
 */
function start(words: readonly string[]): void {
  if (isForServers(words)) {
    if (SPARING.has(words[0] ?? "")) spareMemory();
    void import(pathToFileURL(join(__dirname, "main.js")).href);
    return;
  }
  useLightHeaders();
  const userId = process.geteuid?.();
  // Use no directory on systems without user ids, where the owner of a directory is unknown.
  const directory =
    userId === undefined ? null : compiledCodeDirectory({ env: process.env, home: homeDirectory(), userId });
  if (directory !== null) enableCompileCache(directory);
  createRequire(__filename)("./cli.cjs");
}

/** Verbs whose processes save memory, because they run on every machine of a fleet, next to the machine's work. */
const SPARING: ReadonlySet<string> = new Set(["agent", "keeper"]);

/**
 * Save memory at the expense of speed, which these verbs hardly need: run their code in V8's interpreter, and do not
 * load undici for Headers. Saves 10 MiB.
 */
function spareMemory(): void {
  useLightHeaders();
  for (const flag of ["--no-opt", "--no-maglev", "--no-sparkplug"]) setFlagsFromString(flag);
}

const problem = nodeProblem(process.versions.node);
if (problem === null) {
  removeBundledLibraries(process.env, process.execPath);
  start(process.argv.slice(2));
} else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}
