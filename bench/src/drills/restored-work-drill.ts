import { setTimeout as delay } from "node:timers/promises";
import type { BenchContext } from "../bench-context.ts";
import { LoadProcess } from "../load/load-process.ts";
import type { PacedOrder, PacedOutcome } from "../load/paced-load.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { freePorts, type ProcessPorts, type RunningService, startService } from "../servers/rollcall.ts";
import { countOf, offerWork, submitService } from "../servers/work-of-nodes.ts";
import type { Drill, DrillResult } from "./drill.ts";

/**
 * The number of executions that run when the backup is made, and the number of further executions that run when it
 * is restored.
 */
interface Size {
  readonly agents: number;
  readonly known: number;
  readonly unknown: number;
}

const FULL: Size = { agents: 50, known: 400, unknown: 600 };
const SHORT: Size = { agents: 10, known: 40, unknown: 60 };
/**
 * The processor capacity that each machine offers, in millicores. It has room for 25 executions, so most machines
 * have some.
 */
const OFFERED = 50_000;
const EACH = 2_000;
/** How long to wait without any progress. */
const LIMIT_MS = 300_000;
/** The time within which the restored store would have stopped every execution that it does not want. */
const QUIET_MS = 20_000;
const INTERVAL_MS = 2_000;
const READY = "select count(*)::integer as count from execution_observations where observed = 'READY'";

/** Restores an old backup while executions run that it does not contain. */
export const restoredWork: Drill = {
  name: "restored-work",
  title: "an old backup of the store is restored while 1,000 executions run",
  run: async (context, { length }) => {
    const size = length === "full" ? FULL : SHORT;
    const database = await startDatabase(context);
    const { url } = database;
    await seedNodes({ url, count: size.agents, identities: true });
    const token = await createAccessToken(url, "admin");
    await withClient(url, (client) => offerWork(client, { millicores: OFFERED }));
    const plane = await ControlPlane.start(context, url);
    const load = new LoadProcess<PacedOrder, PacedOutcome>("paced-load");
    context.atEnd(() => load.stop());
    await load.order({
      ...{ kind: "run", firstNode: 0, agents: size.agents, fleet: size.agents, ports: [plane.agentPort] },
      ...{ isSpread: true, intervalMs: INTERVAL_MS, patienceMs: 10_000, runsWork: true },
    });
    await until(url, "select count(*)::integer as count from node_sessions where health = 'HEALTHY'", size.agents);
    await submitService(plane.apiPort, token, { name: "known", count: size.known, millicores: EACH });
    await until(url, READY, size.known);
    await plane.stop("SIGTERM");
    await copyDatabase(url, "rollcall", "backup");
    context.progress(`${size.known} executions run, and the store is backed up`);
    await plane.start();
    await submitService(plane.apiPort, token, { name: "unknown", count: size.unknown, millicores: EACH });
    await until(url, READY, size.known + size.unknown);
    await plane.stop("SIGKILL");
    await copyDatabase(url, "backup", "rollcall");
    context.progress(`${size.known + size.unknown} executions run, and the backup is restored`);
    await plane.start();
    await until(url, ORPHANED, size.unknown);
    await delay(QUIET_MS);
    const { work } = await load.order({ kind: "report", gapMs: LIMIT_MS });
    return resultOf(size, work, {
      orphaned: await count(url, ORPHANED),
      adopted: await count(url, LIVE),
    });
  },
};

const ORPHANED = "select count(*)::integer as count from executions where state = 'ORPHANED' and desired = 'RUN'";
const LIVE = "select count(*)::integer as count from executions where state = 'LIVE' and desired = 'RUN'";

function resultOf(
  { known, unknown }: Size,
  work: PacedOutcome["work"],
  record: { readonly orphaned: number; readonly adopted: number },
): DrillResult {
  const all = known + unknown;
  const isWhole = work.running === all && work.starts === all && work.stops === 0 && work.ends === 0;
  const passed = isWhole && record.orphaned === unknown && record.adopted === known;
  const lines = [
    `${passed ? "PASSED" : "FAILED"}: ${work.running} of ${all} executions run`,
    `  told to stop:      ${work.stops}`,
    `  started again:     ${work.starts - all}`,
    `  adopted again:     ${record.adopted} of ${known} in the backup`,
    `  shown as ORPHANED: ${record.orphaned} of ${unknown} not in the backup`,
  ];
  return { passed, text: lines.join("\n") };
}

/** The health service and the scheduler, always on the same ports. */
class ControlPlane {
  readonly #context: BenchContext;
  readonly #url: string;
  readonly #ports: { readonly health: ProcessPorts; readonly scheduler: ProcessPorts };
  #services: readonly RunningService[] = [];

  private constructor(context: BenchContext, url: string, ports: ControlPlane["ports"]) {
    this.#context = context;
    this.#url = url;
    this.#ports = ports;
  }

  static async start(context: BenchContext, url: string): Promise<ControlPlane> {
    const plane = new ControlPlane(context, url, { health: await freePorts(), scheduler: await freePorts() });
    await plane.start();
    return plane;
  }

  get ports(): { readonly health: ProcessPorts; readonly scheduler: ProcessPorts } {
    return this.#ports;
  }

  get agentPort(): number {
    return this.#ports.health.agents;
  }

  get apiPort(): number {
    return this.#ports.scheduler.api;
  }

  async start(): Promise<void> {
    const { health, scheduler } = this.#ports;
    this.#services = [
      await startService(this.#context, "health", this.#url, [], { ports: health }),
      await startService(this.#context, "scheduler", this.#url, [], { ports: scheduler }),
    ];
  }

  async stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    for (const { server } of this.#services) server.signal(signal);
    await Promise.all(this.#services.map(({ server }) => server.stop()));
  }
}

/** Replace one database with a copy of another. No process may be connected to either. */
async function copyDatabase(url: string, from: string, to: string): Promise<void> {
  const own = new URL(url).pathname.slice(1);
  const nameOf = (name: string) => (name === "rollcall" ? own : `${own}_${name}`);
  const maintenance = new URL(url);
  maintenance.pathname = "/postgres";
  await withClient(maintenance.href, async (client) => {
    await client.query(`drop database if exists "${nameOf(to)}" with (force)`);
    await client.query(`create database "${nameOf(to)}" template "${nameOf(from)}"`);
  });
}

async function until(url: string, query: string, wanted: number): Promise<void> {
  let limit = performance.now() + LIMIT_MS;
  for (let before = 0; ; ) {
    const found = await count(url, query);
    if (found >= wanted) return;
    if (found > before) limit = performance.now() + LIMIT_MS;
    before = found;
    if (performance.now() > limit) {
      throw new Error(`${found} of ${wanted} after ${LIMIT_MS / 1_000} s: ${query}; ${await standing(url)}`);
    }
    await delay(250);
  }
}

/** Describe the current state of the store, to explain missing executions. */
function standing(url: string): Promise<string> {
  const all = `select json_build_object(
    'lease', (select json_agg(instance) from leases where name = 'scheduler'),
    'jobs', (select json_agg(json_build_array(name, state, count, message)) from jobs),
    'sessions', (select json_agg(s) from (
      select connection, health, count(*) from node_sessions group by 1, 2) as s),
    'executions', (select json_agg(e) from (
      select state, desired, reason, count(*) from executions group by 1, 2, 3) as e),
    'observations', (select json_agg(o) from (
      select observed, count(*) from execution_observations group by 1) as o)) as text`;
  return withClient(url, async (client) => JSON.stringify((await client.query(all)).rows[0]));
}

function count(url: string, query: string): Promise<number> {
  return withClient(url, (client) => countOf(client, query));
}
