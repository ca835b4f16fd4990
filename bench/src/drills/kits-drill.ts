import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BenchContext } from "../bench-context.ts";
import { makeGoPrograms, makePythonPrograms } from "../conformance/kit-programs.ts";
import { startDatabase, withClient } from "../servers/database.ts";
import { type RunningService, startService } from "../servers/rollcall.ts";
import type { Drill, DrillResult } from "./drill.ts";

const KILLS = { full: 100, short: 4 };
const RECOVER_WITHIN_MS = 120_000;
const SCAN_EVERY_MS = 50;
const UNHEALTHY_AFTER_MS = 15_000;
const FLAGS = [
  `Orchestrator.NodeManager.DisconnectTimeout=${UNHEALTHY_AFTER_MS}ms`,
  `Orchestrator.NodeManager.UnknownTimeout=${5 * UNHEALTHY_AFTER_MS}ms`,
  "Compute.Heartbeat.Interval=1s",
].flatMap((setting) => ["--set", setting]);
const NODES = ["kit-go", "kit-python"];

/** Kills health replicas one after the other while agents of the kits are connected. */
export const kits: Drill = {
  name: "kits",
  title: "SIGKILL of one health replica after the other, 100 times, with the example agents of the Go and Python kits",
  run: async (context, { length }) => {
    const kills = KILLS[length];
    const [go, python] = await Promise.all([
      makeGoPrograms(await folderOf(context, "go")),
      makePythonPrograms(await folderOf(context, "python")),
    ]);
    context.progress("the example agents are built");
    const { url } = await startDatabase(context);
    const registry = await startService(context, "registry", url, [
      "--set",
      "Orchestrator.NodeManager.ManualApproval=false",
    ]);
    const replicas: RunningService[] = [];
    for (let index = 0; index < 2; index += 1) replicas.push(await startService(context, "health", url, FLAGS));
    const agents = [go, python].map(({ example }, index) => {
      return startAgent(context, example, NODES[index] ?? "", `127.0.0.1:${registry.port}`);
    });
    await healthy(url);
    const start = await revisionOf(url);
    for (let kill = 0; kill < kills; kill += 1) {
      const index = kill % replicas.length;
      const replica = replicas[index];
      if (replica === undefined) continue;
      replica.server.signal("SIGKILL");
      await replica.server.stop();
      replicas[index] = await startService(context, "health", url, FLAGS, { ports: replica.ports });
      await healthy(url);
      if ((kill + 1) % 10 === 0) context.progress(`${kill + 1} of ${kills} replicas were killed`);
    }
    // Wait until any node that fell silent has been declared unhealthy.
    await delay(UNHEALTHY_AFTER_MS + 1_000);
    await healthy(url);
    const alive = agents.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null).length;
    return resultOf(kills, alive, await eventsSince(url, start));
  },
};

export function resultOf(kills: number, alive: number, events: Readonly<Record<string, number>>): DrillResult {
  const losses = (events["node.health.changed"] ?? 0) + (events["node.reactions.allowed"] ?? 0);
  const passed = losses === 0 && alive === NODES.length;
  const lines = [
    `${passed ? "PASSED" : "FAILED"}: ${alive} of ${NODES.length} agents survived ${kills} kills`,
    `  events of a loss: ${losses}`,
    ...Object.entries(events).map(([type, count]) => `  ${type}: ${count}`),
  ];
  return { passed, text: lines.join("\n") };
}

async function folderOf(context: BenchContext, name: string): Promise<string> {
  const folder = join(context.directory, name);
  await mkdir(folder);
  return folder;
}

function startAgent(context: BenchContext, command: readonly string[], name: string, server: string): ChildProcess {
  const [program = "", ...words] = command;
  const log = openSync(join(context.directory, `${name}.log`), "a");
  const state = join(context.directory, `${name}-state`);
  const child = spawn(program, [...words, "--server", server, "--name", name, "--state-dir", state], {
    stdio: ["ignore", log, log],
  });
  context.atEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  });
  return child;
}

/** Wait until both nodes are HEALTHY and connected to a live replica. */
async function healthy(url: string): Promise<void> {
  const endMs = performance.now() + RECOVER_WITHIN_MS;
  const sql =
    "select count(*)::int as count from node_sessions where node_id = any($1) and health = 'HEALTHY' and " +
    "connection = 'CONNECTED' and replica_id in (select instance from leases)";
  for (;;) {
    const { rows } = await withClient(url, (client) => client.query(sql, [NODES]));
    if (rows[0]?.count === NODES.length) return;
    if (performance.now() > endMs) throw new Error(`only ${rows[0]?.count} of ${NODES.length} nodes are HEALTHY`);
    await delay(SCAN_EVERY_MS);
  }
}

async function revisionOf(url: string): Promise<string> {
  const sql = "select coalesce(max(revision), 0)::text as revision from events";
  const { rows } = await withClient(url, (client) => client.query(sql));
  return String(rows[0]?.revision ?? "0");
}

async function eventsSince(url: string, revision: string): Promise<Readonly<Record<string, number>>> {
  const sql = "select type, count(*)::int as count from events where revision > $1 and subject = any($2) group by type";
  const { rows } = await withClient(url, (client) => client.query(sql, [revision, NODES]));
  return Object.fromEntries(rows.map(({ type, count }) => [String(type), Number(count)]));
}
