import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BenchContext } from "../bench-context.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { freePorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";
import { ServerProcess } from "../servers/server-process.ts";
import { callJobs } from "../servers/work-of-nodes.ts";
import type { Drill, DrillResult } from "./drill.ts";
import { DrilledMachine } from "./machines/drilled-machine.ts";
import { MACHINE_FAULTS, type MachineFault } from "./machines/machine-faults.ts";

/** The time within which a fault must become a condition of its node, on a machine that is not busy. */
const SEEN_WITHIN_MS = 30_000;
/** The time limit for waiting for anything. */
const PATIENCE_MS = 300_000;
const SCAN_EVERY_MS = 250;

/** The result of one fault. */
export interface FaultOutcome {
  readonly name: string;
  /** Why the fault was skipped; null if it was tried. */
  readonly skipped: string | null;
  /** The time until the node reported the condition and got a hold for it; null if it never did. */
  readonly seenAfterMs: number | null;
  /** The time from the repair until the node was ELIGIBLE again; null if it never was. */
  readonly overAfterMs: number | null;
  /** The behaviour of executions during the fault; null if none were placed. */
  readonly work: WorkOutcome | null;
}

/**
 * Whether executions that ran on the machine stayed there, and whether executions that had not started became ready on
 * another machine.
 */
export interface WorkOutcome {
  readonly hasStayed: boolean;
  readonly hasMoved: boolean;
}

/** Tries every fault that an agent must detect on its machine, with real processes. */
export const brokenAgents: Drill = {
  name: "broken-agents",
  title: "full and read-only disks, no descriptors, no processes, dead and stuck keepers, an engine that hangs",
  run: async (context, { limitsTime, length }) => {
    const plane = await startPlane(context);
    const faults = length === "short" ? MACHINE_FAULTS.filter(({ isInShort }) => isInShort) : MACHINE_FAULTS;
    const tried: FaultOutcome[] = [];
    for (const isUnderWork of [true, false]) {
      const group = faults.filter((fault) => (fault.isUnderWork ?? false) === isUnderWork);
      tried.push(...(await Promise.all(group.map((fault) => tryFault(context, plane, fault)))));
    }
    return resultOf(tried, limitsTime ? SEEN_WITHIN_MS : null);
  },
};

/** The result of the drill. `seenWithinMs` is null if times are not evaluated. */
export function resultOf(tried: readonly FaultOutcome[], seenWithinMs: number | null): DrillResult {
  const isSeen = ({ seenAfterMs, overAfterMs }: FaultOutcome): boolean =>
    seenAfterMs !== null && overAfterMs !== null && (seenWithinMs === null || seenAfterMs <= seenWithinMs);
  const isWell = (one: FaultOutcome): boolean =>
    one.skipped !== null || (isSeen(one) && one.work?.hasStayed !== false && one.work?.hasMoved !== false);
  const passed = tried.every(isWell);
  const count = tried.filter(({ skipped: why }) => why === null).length;
  const lines = tried.map(({ name, skipped: why, seenAfterMs, overAfterMs, work }) =>
    why === null
      ? `  ${name}: reported after ${secondsOf(seenAfterMs)}, cleared ${secondsOf(overAfterMs)} after the repair` +
        workText(work)
      : `  ${name}: SKIPPED, ${why}`,
  );
  const title = `${passed ? "PASSED" : "FAILED"}: ${count} of ${tried.length} faults were tried`;
  return { passed, text: [title, ...lines].join("\n") };
}

function workText(work: WorkOutcome | null): string {
  if (work === null) return "";
  const [stayed, moved] = [work.hasStayed ? "stayed" : "DID NOT STAY", work.hasMoved ? "moved" : "DID NOT MOVE"];
  return `; running work ${stayed}, unstarted work ${moved}`;
}

interface Plane {
  readonly url: string;
  readonly token: string;
  readonly port: number;
}

async function startPlane(context: BenchContext): Promise<Plane> {
  const { url } = await startDatabase(context);
  const ports = await freePorts();
  const server = await ServerProcess.start({
    program: ROLLCALL_PROGRAM,
    args: [
      ...["up", "--no-agent", "--data-dir", join(context.directory, "data"), ...portFlags(ports, true)],
      ...["--set", "Orchestrator.NodeManager.ManualApproval=false"],
    ],
    env: { DATABASE_URL: url },
    port: ports.api,
    logFile: join(context.directory, "up.log"),
  });
  context.atEnd(() => server.stop());
  return { url, token: await createAccessToken(url, "admin"), port: ports.api };
}

/** Try a fault on a separate machine. */
async function tryFault(context: BenchContext, plane: Plane, fault: MachineFault): Promise<FaultOutcome> {
  const obstacle = await fault.obstacle();
  if (obstacle !== null) return skipped(fault, obstacle);
  if (fault.isUnderWork === true) return tryUnderWork(context, plane, fault);
  const machine = await startMachine(context, plane, fault);
  const seenAfterMs = await breakMachine(plane, fault, machine);
  const overAfterMs = await repairMachine(plane, fault, machine);
  context.progress(`${fault.name}: reported after ${secondsOf(seenAfterMs)}, over after ${secondsOf(overAfterMs)}`);
  return { name: fault.name, skipped: null, seenAfterMs, overAfterMs, work: null };
}

/**
 * Try a fault on a machine with executions. Running executions must stay. Executions that were placed there but have
 * not started must move to another node once there is one.
 */
async function tryUnderWork(context: BenchContext, plane: Plane, fault: MachineFault): Promise<FaultOutcome> {
  const [stays, moves, spare] = [`stays-${fault.name}`, `moves-${fault.name}`, `spare-${fault.name}`];
  const machine = await startMachine(context, plane, fault);
  await submit(plane, stays, fault.name);
  const running = await until(() => readyOn(plane, stays, machine.name));
  // Stop the agent. Otherwise it could start the execution before the fault, or report the fault before the execution
  // is placed.
  machine.signalAgent("SIGSTOP");
  await submit(plane, moves, fault.name);
  const placed = await until(() => placedOn(plane, moves, machine.name));
  const breaking = breakMachine(plane, fault, machine);
  machine.signalAgent("SIGCONT");
  const seenAfterMs = await breaking;
  await startMachine(context, plane, { ...fault, name: spare, prepare: async () => {} }, fault.name);
  const moved = await until(() => readyOn(plane, moves, spare));
  const stayed = await readyOn(plane, stays, machine.name);
  const overAfterMs = await repairMachine(plane, fault, machine);
  const work = {
    // Check that the same execution still runs after the repair.
    hasStayed: running !== null && stayed === running && (await readyOn(plane, stays, machine.name)) === running,
    hasMoved: placed !== null && moved !== null && moved !== placed,
  };
  context.progress(`${fault.name}: reported after ${secondsOf(seenAfterMs)}${workText(work)}`);
  return { name: fault.name, skipped: null, seenAfterMs, overAfterMs, work };
}

/** @param group the value of the label that the jobs of the fault select. */
async function startMachine(
  context: BenchContext,
  plane: Plane,
  fault: MachineFault,
  group = fault.name,
): Promise<DrilledMachine> {
  const machine = new DrilledMachine(context, { name: fault.name, group, server: `127.0.0.1:${plane.port}` });
  await machine.makeDirectory();
  await fault.prepare?.(machine);
  await machine.start();
  if ((await until(() => isEligible(plane, machine.name))) === null) {
    throw new Error(`${machine.name} did not become ELIGIBLE; see its log in ${context.directory}`);
  }
  return machine;
}

async function breakMachine(plane: Plane, fault: MachineFault, machine: DrilledMachine): Promise<number | null> {
  const sinceMs = performance.now();
  await fault.begin(machine);
  const seen = await until(async () => {
    const { reasons, holds } = await nodeOf(plane, machine.name);
    return reasons.includes(fault.reason) && holds.includes("CONDITION") ? true : null;
  });
  return seen === null ? null : performance.now() - sinceMs;
}

async function repairMachine(plane: Plane, fault: MachineFault, machine: DrilledMachine): Promise<number | null> {
  const sinceMs = performance.now();
  await fault.end(machine);
  const over = await until(() => isEligible(plane, machine.name));
  return over === null ? null : performance.now() - sinceMs;
}

async function isEligible(plane: Plane, name: string): Promise<true | null> {
  const { reasons, holds, health, executors } = await nodeOf(plane, name);
  return health === "HEALTHY" && reasons.length === 0 && holds.length === 0 && executors > 0 ? true : null;
}

interface SeenNode {
  readonly reasons: readonly string[];
  readonly holds: readonly string[];
  readonly health: string;
  readonly executors: number;
}

async function nodeOf({ url }: Plane, name: string): Promise<SeenNode> {
  const sql = `
    select
      array(select c ->> 'reason' from jsonb_array_elements(n.info -> 'conditions') as c) as reasons,
      array(select h ->> 'kind' from jsonb_array_elements(n.holds) as h) as holds,
      s.health, coalesce(jsonb_array_length(n.info #> '{work,executors}'), 0)::int as executors
    from nodes as n join node_sessions as s on s.node_id = n.id
    where n.id = $1`;
  const { rows } = await withClient(url, (client) => client.query<SeenNode>(sql, [name]));
  return rows[0] ?? { reasons: [], holds: [], health: "UNKNOWN", executors: 0 };
}

async function submit({ port, token }: Plane, name: string, group: string): Promise<void> {
  const task = { process: { command: ["sleep", "infinity"] } };
  await callJobs(port, token, "SubmitJob", {
    spec: {
      ...{ name, type: "JOB_TYPE_SERVICE", count: 1, queueTimeout: "3600s" },
      selector: `drill=${group}`,
      matchAgentLabels: true,
      ...task,
    },
  });
}

/** Find the execution of a job that is ready on a node. Returns its id; null after the time limit. */
function readyOn(plane: Plane, job: string, node: string): Promise<string | null> {
  return executionOf(plane, job, node, "o.observed = 'READY'");
}

/**
 * Find the execution of a job that is placed on a node and has not started. Returns its id; null after the time limit.
 */
function placedOn(plane: Plane, job: string, node: string): Promise<string | null> {
  return executionOf(plane, job, node, "(o.observed is null or o.observed = 'STARTING')");
}

async function executionOf({ url }: Plane, job: string, node: string, condition: string): Promise<string | null> {
  const sql = `
    select e.id from executions as e left join execution_observations as o on o.execution_id = e.id
    where e.job = $1 and e.node_id = $2 and e.state = 'LIVE' and e.desired = 'RUN' and ${condition}`;
  const { rows } = await withClient(url, (client) => client.query<{ readonly id: string }>(sql, [job, node]));
  return rows[0]?.id ?? null;
}

/** Poll until there is a value. Returns null after PATIENCE_MS. */
async function until<T>(look: () => Promise<T | null>): Promise<T | null> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== null || performance.now() > endMs) return found;
    await delay(SCAN_EVERY_MS);
  }
}

function skipped({ name }: MachineFault, why: string): FaultOutcome {
  return { name, skipped: why, seenAfterMs: null, overAfterMs: null, work: null };
}

function secondsOf(ms: number | null): string {
  return ms === null ? "never" : `${(ms / 1_000).toFixed(1)} s`;
}
