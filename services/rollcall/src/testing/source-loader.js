// Lets Node run the workspace from its sources: `node --conditions=source --import <this file> services/rollcall/src/main.ts`.
// What was compiled once is kept by its content, so that the second start costs little more than one of dist.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire, register } from "node:module";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

const CACHE = join(tmpdir(), `rollcall-source-${userInfo().uid}`);
const OPTIONS = {
  jsc: { target: "es2023", parser: { syntax: "typescript" } },
  module: { type: "es6" },
  sourceMaps: "inline",
};

// Node runs hooks in a thread of their own, which loads this same file.
if (isMainThread) register(import.meta.url);
else mkdirSync(CACHE, { recursive: true, mode: 0o700 });

export async function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context);
  return { format: "module", shortCircuit: true, source: compile(fileURLToPath(url)) };
}

function compile(file) {
  const source = readFileSync(file, "utf8");
  const key = createHash("sha256").update(file).update(JSON.stringify(OPTIONS)).update(source);
  const cached = join(CACHE, `${key.digest("hex")}.js`);
  try {
    return readFileSync(cached, "utf8");
  } catch {
    // Loaded only now: when everything is in the cache, the compiler is not needed.
    const { transformSync } = createRequire(import.meta.url)("@swc/core");
    const { code } = transformSync(source, { ...OPTIONS, filename: file });
    writeFileSync(`${cached}.${process.pid}`, code);
    renameSync(`${cached}.${process.pid}`, cached);
    return code;
  }
}
