// Runs the programs that make packages.
import { spawn } from "node:child_process";

/** Run a program until it exits. Returns its output. If the program fails, rejects with its error output. */
export function run(program, words, { cwd, env, input } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { cwd, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    const [out, err] = [[], []];
    child.stdout.on("data", (piece) => out.push(piece));
    child.stderr.on("data", (piece) => err.push(piece));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve(Buffer.concat(out));
      else reject(new Error(`${program} ${words.join(" ")} ended with ${code}:\n${Buffer.concat([...out, ...err])}`));
    });
    child.stdin.end(input);
  });
}

/** Process each item, up to `atOnce` items at a time. Returns the results in the order of the items. */
export async function mapBounded(items, atOnce, work) {
  const results = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
