import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { constants, Script } from "node:vm";
import { type CodeCache, createCodeCache } from "./code-cache.ts";
import { useLightHeaders } from "./light-headers.ts";
import { isForServers, nounOf } from "./server-words.ts";

/** Put there by bundle.mjs: the digest of the command line's file, so that no other's code is taken for its. */
declare const DIGEST_OF_CLI: string;

const FOLDER = __dirname;
const MAIN: string = pathToFileURL(join(FOLDER, "main.js")).href;

/**
 * Start the program beside this file. The command line is one file, a script that Node.js need not compile each time;
 * that of the servers is made of modules.
 */
function start(words: readonly string[]): void {
  if (isForServers(words)) {
    if (words[0] === "agent") spareMemory();
    void import(MAIN);
    return;
  }
  useLightHeaders();
  const userId = process.geteuid?.();
  // Elsewhere it cannot be told whose a file is.
  const cache = userId === undefined ? null : createCodeCache({ env: process.env, home: homedir(), userId });
  runScript(join(FOLDER, "cli.cjs"), cache, `${DIGEST_OF_CLI}-${process.version}-${process.arch}-${nounOf(words)}`);
}

/**
 * Trade speed, which an agent hardly needs, for memory: run its code in V8's interpreter, and do not load undici for
 * Headers. Saves 10 MiB.
 */
function spareMemory(): void {
  useLightHeaders();
  for (const flag of ["--no-opt", "--no-maglev", "--no-sparkplug"]) setFlagsFromString(flag);
}

function runScript(file: string, cache: CodeCache | null, name: string): void {
  const kept = cache?.read(name);
  // It has no character beyond ASCII.
  const text = `(function (require, module, exports, __filename, __dirname) {${readFileSync(file, "latin1")}\n})`;
  const script = new Script(text, {
    filename: file,
    ...(kept === undefined ? {} : { cachedData: kept }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const module = { exports: {} };
  script.runInThisContext()(createRequire(file), module, module.exports, file, dirname(file));
  // At the end, when it is known which functions are needed.
  const isMissing = kept === undefined || script.cachedDataRejected === true;
  if (cache !== null && isMissing) process.once("exit", () => cache.write(name, script.createCachedData()));
}

start(process.argv.slice(2));
