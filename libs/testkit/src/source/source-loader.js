// Lets Node run the workspace from its sources: `node --conditions=source --import <this file>
// services/rollcall/src/main.ts`. What was stripped of its types once is kept by its content, so that the second start
// costs little more than one of dist.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { register } from "node:module";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

const CACHE = join(tmpdir(), `rollcall-source-${userInfo().uid}`);
// Types give way to spaces, so that lines and columns stay what they are in the source.
const OPTIONS = { mode: "strip-only", module: true };

// Node runs hooks in a thread of their own, which loads this same file.
if (isMainThread) register(import.meta.url);
else mkdirSync(CACHE, { recursive: true, mode: 0o700 });

export async function load(url, context, nextLoad) {
  const { pathname } = new URL(url);
  if (!url.startsWith("file:") || !pathname.endsWith(".ts")) return nextLoad(url, context);
  return { format: "module", shortCircuit: true, source: await strip(fileURLToPath(url)) };
}

async function strip(file) {
  const source = readFileSync(file, "utf8");
  const key = createHash("sha256").update(JSON.stringify(OPTIONS)).update(source);
  const cached = join(CACHE, `${key.digest("hex")}.js`);
  try {
    return readFileSync(cached, "utf8");
  } catch {
    // Loaded only now: when everything is in the cache, it is not needed.
    const { transformSync } = await import("@swc/wasm-typescript");
    const { code } = transformSync(source, { ...OPTIONS, filename: file });
    writeFileSync(`${cached}.${process.pid}`, code);
    renameSync(`${cached}.${process.pid}`, cached);
    return code;
  }
}
