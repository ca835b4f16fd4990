import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench, BenchContext } from "../bench-context.ts";
import { startDatabase, withClient } from "../servers/database.ts";
import { makeJoinToken } from "../servers/join-token.ts";
import { residentBytesOf } from "../servers/process-cpu.ts";
import { ROLLCALL_PROGRAM, startService } from "../servers/rollcall.ts";

const CONNECTED_FOR_MS = 30_000;
const HEALTHY_LIMIT_MS = 60_000;
const SCAN_EVERY_MS = 200;
/** The memory that the agent may use in addition to that of Node.js itself, in MiB. */
const ALLOWED_MIB = 20;
const MIB = 1_048_576;
const IDLE_PROGRAM = "setInterval(() => {}, 60_000)";

/** Measures what the agent uses on its machine. */
export const agentMemory: Bench = {
  name: "agent-memory",
  title: `resident memory of an agent, ${CONNECTED_FOR_MS / 1_000} s after it connected`,
  async run(context) {
    const { url } = await startDatabase(context);
    const registry = await startService(context, "registry", url);
    await startService(context, "health", url);
    const stateDirectory = join(context.directory, "agent");
    mkdirSync(stateDirectory);
    const words = [
      ...["--max-semi-space-size=1", ROLLCALL_PROGRAM, "agent"],
      ...["--server", `127.0.0.1:${registry.port}`],
      ...["--state-dir", stateDirectory, "--join-token", await makeJoinToken(url)],
    ];
    // Start the agent in the same way as the launcher in the packages.
    const agent = start(context, "agent", words, { MALLOC_ARENA_MAX: "1" });
    const empty = start(context, "empty", ["-e", IDLE_PROGRAM]);
    await untilHealthy(url);
    context.progress("the agent is HEALTHY");
    await delay(CONNECTED_FOR_MS);
    const agentMib = residentBytesOf(agent) / MIB;
    const emptyMib = residentBytesOf(empty) / MIB;
    const figure = { figure: "the agent's process", measured: agentMib, unit: "MiB" };
    return [
      { ...figure, against: "an empty program", compared: emptyMib, target: "" },
      {
        ...figure,
        against: `an empty program + ${ALLOWED_MIB}`,
        compared: emptyMib + ALLOWED_MIB,
        target: "1 or less",
      },
    ];
  },
};

/** Starts Node.js with these arguments, and stops the process at the end of the benchmark. Returns its process id. */
function start(context: BenchContext, name: string, words: readonly string[], environment = {}): number {
  const log = openSync(join(context.directory, `${name}.log`), "w");
  const env = { ...process.env, ...environment };
  const child = spawn(process.execPath, [...words], { stdio: ["ignore", log, log], env });
  context.atEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill();
    await exit;
  });
  return child.pid ?? 0;
}

async function untilHealthy(url: string): Promise<void> {
  const limit = performance.now() + HEALTHY_LIMIT_MS;
  const query = "select count(*)::int as count from node_sessions where health = 'HEALTHY' and node_type = 'COMPUTE'";
  while (performance.now() < limit) {
    const { rows } = await withClient(url, (client) => client.query(query));
    if (rows[0]?.count === 1) return;
    await delay(SCAN_EVERY_MS);
  }
  throw new Error(`the agent is not HEALTHY after ${HEALTHY_LIMIT_MS / 1_000} s`);
}
