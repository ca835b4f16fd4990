import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BenchContext } from "../bench-context.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { freePorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";
import { ServerProcess } from "../servers/server-process.ts";
import { callJobs } from "../servers/work-of-nodes.ts";
import type { Drill, Verdict } from "./drill.ts";
import { DrilledMachine } from "./machines/drilled-machine.ts";
import { MACHINE_FAULTS, type MachineFault } from "./machines/machine-faults.ts";

/** Within this a fault is to be a condition of its node, on a machine that is not busy. */
const SEEN_WITHIN_MS = 30_000;
/** How long is waited for anything. */
const PATIENCE_MS = 300_000;
const LOOK_EVERY_MS = 250;

/** What came of one fault. */
export interface FaultOutcome {
  readonly name: string;
  /** Why it was not tried; null when it was. */
  readonly skipped: string | null;
  /** Until the node reported the condition, and was held for it; null when it never did. */
  readonly seenAfterMs: number | null;
  /** Until the node was ELIGIBLE again, from the repair on; null when it never was. */
  readonly overAfterMs: number | null;
}

/** Every fault that an agent is to find in its machine, with real processes. */
export const brokenAgents: Drill = {
  name: "broken-agents",
  title: "full and read-only disks, no descriptors, no processes, dead and stuck keepers, an engine that hangs",
  run: async (context, { judgesTime, length }) => {
    const plane = await startPlane(context);
    const tried: FaultOutcome[] = [];
    const [first, ...others] =
      length === "short" ? MACHINE_FAULTS.filter(({ isInShort }) => isInShort) : MACHINE_FAULTS;
    let work = "not tried: its fault is not possible here";
    if (first !== undefined) {
      const obstacle = await first.obstacle();
      if (obstacle === null) {
        const placed = await placeUnder(context, plane, first);
        work = placed.work;
        tried.push(placed.outcome);
      } else tried.push(skipped(first, obstacle));
    }
    tried.push(...(await Promise.all(others.map((fault) => tryFault(context, plane, fault)))));
    return verdictOf(tried, work, judgesTime ? SEEN_WITHIN_MS : null);
  },
};

/** The verdict; `seenWithinMs` is null where the clock does not count. */
export function verdictOf(tried: readonly FaultOutcome[], work: string, seenWithinMs: number | null): Verdict {
  const isWell = ({ skipped: why, seenAfterMs, overAfterMs }: FaultOutcome): boolean =>
    why !== null ||
    (seenAfterMs !== null && overAfterMs !== null && (seenWithinMs === null || seenAfterMs <= seenWithinMs));
  const passed = tried.every(isWell) && !work.startsWith("FAILED");
  const count = tried.filter(({ skipped: why }) => why === null).length;
  const lines = tried.map(({ name, skipped: why, seenAfterMs, overAfterMs }) =>
    why === null
      ? `  ${name}: reported after ${secondsOf(seenAfterMs)}, over ${secondsOf(overAfterMs)} after the repair`
      : `  ${name}: SKIPPED, ${why}`,
  );
  const title = `${passed ? "PASSED" : "FAILED"}: ${count} of ${tried.length} faults were tried`;
  return { passed, text: [title, ...lines, `  work: ${work}`].join("\n") };
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

/** Try a fault on a machine of its own. */
async function tryFault(context: BenchContext, plane: Plane, fault: MachineFault): Promise<FaultOutcome> {
  const obstacle = await fault.obstacle();
  if (obstacle !== null) return skipped(fault, obstacle);
  const machine = await startMachine(context, plane, fault);
  const seenAfterMs = await breakMachine(plane, fault, machine);
  const overAfterMs = await repairMachine(plane, fault, machine);
  context.progress(`${fault.name}: reported after ${secondsOf(seenAfterMs)}, over after ${secondsOf(overAfterMs)}`);
  return { name: fault.name, skipped: null, seenAfterMs, overAfterMs };
}

/**
 * Try a fault under work: what runs there stays, and what was placed there and has not started is placed elsewhere once
 * there is another node.
 */
async function placeUnder(
  context: BenchContext,
  plane: Plane,
  fault: MachineFault,
): Promise<{ readonly outcome: FaultOutcome; readonly work: string }> {
  const machine = await startMachine(context, plane, fault);
  await submit(plane, "stays");
  const running = await until(() => readyOn(plane, "stays", machine.name));
  // An agent that runs could start the execution before the fault, or report the fault before it is placed.
  machine.signalAgent("SIGSTOP");
  await submit(plane, "moves");
  const placed = await until(() => placedOn(plane, "moves", machine.name));
  const breaking = breakMachine(plane, fault, machine);
  machine.signalAgent("SIGCONT");
  const seenAfterMs = await breaking;
  await startMachine(context, plane, { ...fault, name: "spare", prepare: async () => {} });
  const moved = await until(() => readyOn(plane, "moves", "spare"));
  const stays = await readyOn(plane, "stays", machine.name);
  const overAfterMs = await repairMachine(plane, fault, machine);
  const isWell = running !== null && stays === running && placed !== null && moved !== null && moved !== placed;
  const work = isWell ? "what ran stayed, what had not started moved" : "FAILED: an execution did not stay or move";
  context.progress(`${fault.name}: ${work}`);
  return { outcome: { name: fault.name, skipped: null, seenAfterMs, overAfterMs }, work };
}

async function startMachine(context: BenchContext, plane: Plane, fault: MachineFault): Promise<DrilledMachine> {
  const machine = new DrilledMachine(context, fault.name, `127.0.0.1:${plane.port}`);
  await machine.makeDirectory();
  await fault.prepare?.(machine);
  await machine.start();
  if ((await until(() => isEligible(plane, machine.name))) === null) {
    throw new Error(`${machine.name} did not become ELIGIBLE: see its log in ${context.directory}`);
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

async function submit({ port, token }: Plane, name: string): Promise<void> {
  const task = { process: { command: ["sleep", "infinity"] } };
  await callJobs(port, token, "SubmitJob", {
    spec: { ...{ name, type: "JOB_TYPE_SERVICE", count: 1, queueTimeout: "3600s" }, ...task },
  });
}

/** The execution of a job that is ready on a node. */
function readyOn(plane: Plane, job: string, node: string): Promise<string | null> {
  return executionOf(plane, job, node, "o.observed = 'READY'");
}

/** The execution of a job that is placed on a node and has not started. */
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

/** Look until there is something; null when there never is. */
async function until<T>(look: () => Promise<T | null>): Promise<T | null> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== null || performance.now() > endMs) return found;
    await delay(LOOK_EVERY_MS);
  }
}

function skipped({ name }: MachineFault, why: string): FaultOutcome {
  return { name, skipped: why, seenAfterMs: null, overAfterMs: null };
}

function secondsOf(ms: number | null): string {
  return ms === null ? "never" : `${(ms / 1_000).toFixed(1)} s`;
}
