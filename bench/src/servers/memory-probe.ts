/**
 * Loaded into a measured server before its own code (`node --expose-gc --import`): it answers "memory" on the channel
 * to the benchmark, after collecting garbage, and ends the server with the benchmark.
 */
import type { MemoryProbeAnswer } from "./server-process.ts";

process.on("message", (order) => {
  if (order !== "memory") return;
  // Twice: what finalizers release in the first round is collected in the second.
  globalThis.gc?.();
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  const answer: MemoryProbeAnswer = { rssBytes: rss, heapBytes: heapUsed + external };
  process.send?.(answer);
});
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
// A server that ends by itself must not be kept alive by the probe.
process.channel?.unref();
