/**
 * A module that is loaded into a measured server before the server's own code (`node --expose-gc --import`). When
 * the benchmark sends "memory" on its channel, the module responds with the memory in use after a garbage
 * collection. It ends the server when the benchmark ends.
 */
import type { MemoryProbeAnswer } from "./server-process.ts";

process.on("message", (order) => {
  if (order !== "memory") return;
  // Collect twice, because the second collection frees what finalizers release in the first.
  globalThis.gc?.();
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  const answer: MemoryProbeAnswer = { rssBytes: rss, heapBytes: heapUsed + external };
  process.send?.(answer);
});
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
// Do not let the probe keep a server alive that would otherwise exit.
process.channel?.unref();
