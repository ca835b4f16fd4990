import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BenchContext } from "../bench-context.ts";
import { freePort } from "./free-port.ts";

/** A nats-server with JetStream on disk. */
export interface BenchNats {
  readonly url: string;
  /** Return the number of messages stored in all streams of the server. */
  storedMessages(): Promise<number>;
}

const START_LIMIT_MS = 20_000;

/**
 * Starts a nats-server for one benchmark, and stops it at the end. Rejects if there is no nats-server
 * on the PATH.
 */
export async function startNats(context: BenchContext): Promise<BenchNats> {
  const [port, monitor] = [await freePort(), await freePort()];
  const config = join(context.directory, "nats.conf");
  const storage = JSON.stringify(join(context.directory, "nats"));
  writeFileSync(
    config,
    `listen: "127.0.0.1:${port}"\nhttp: "127.0.0.1:${monitor}"\njetstream { store_dir: ${storage} }\n`,
  );
  const server = spawn("nats-server", ["-c", config], { stdio: "ignore" });
  await once(server, "spawn");
  context.atEnd(async () => {
    const exit = once(server, "exit");
    if (server.exitCode === null && server.kill()) await exit;
  });
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${monitor}${path}`);
    return (await answer.json()) as { readonly status?: string; readonly messages?: number };
  };
  const limitMs = performance.now() + START_LIMIT_MS;
  for (;;) {
    const health = await ask("/healthz").catch(() => null);
    if (health?.status === "ok") break;
    if (performance.now() > limitMs) throw new Error("nats-server did not start");
    await delay(20);
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    storedMessages: async () => Number((await ask("/jsz")).messages),
  };
}
