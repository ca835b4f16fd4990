import { createRequire, enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { removeBundledLibraries } from "./bundled-libraries.ts";
import { compiledCodeDirectory } from "./compiled-code.ts";
import { useLightHeaders } from "./light-headers.ts";
import { nodeProblem } from "./required-node.ts";
import { isForServers } from "./server-words.ts";

/**
 * Start the program beside this file: the servers' for their verbs, or else the command line's, which is one script
 * whose compiled code is kept.
 */
function start(words: readonly string[]): void {
  if (isForServers(words)) {
    if (SPARING.has(words[0] ?? "")) spareMemory();
    void import(pathToFileURL(join(__dirname, "main.js")).href);
    return;
  }
  useLightHeaders();
  const userId = process.geteuid?.();
  // Where there are no user ids, the owner of a directory is unknown.
  const directory = userId === undefined ? null : compiledCodeDirectory({ env: process.env, home: homedir(), userId });
  if (directory !== null) enableCompileCache(directory);
  createRequire(__filename)("./cli.cjs");
}

/** What runs on every machine of a fleet, for its work. */
const SPARING: ReadonlySet<string> = new Set(["agent", "keeper"]);

/**
 * Trade speed, which these hardly need, for memory: run its code in V8's interpreter, and do not load undici for
 * Headers. Saves 10 MiB.
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
