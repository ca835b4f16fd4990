import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { type Bench, BenchContext } from "../bench-context.ts";
import { cpuBetween, Fleet, FULL_SIZE } from "../drills/fleet.ts";
import { MOST_AGENTS_A_PROCESS } from "../load/paced-loads.ts";
import type { Figure } from "../report.ts";
import { withClient } from "../servers/database.ts";
import {
  AGENTS_A_REPLICA,
  computeSizing,
  fitSizing,
  formatSizing,
  measuredSizing,
  type SizedFleet,
} from "../sizing-formula.ts";

const SIZES = [1_000, 5_000, 10_000, 30_000, 60_000, 100_000, 250_000] as const;
/**
 * The fleet sizes to measure, as shares of `AGENTS`. The fleets share the machine with their loaders. The last fleet
 * has several replicas.
 */
const PARTS = [
  { share: 0.1, replicas: 1 },
  { share: 1, replicas: 1 },
  { share: 1, replicas: 2 },
] as const;
const SETTLE_MS = 20_000;
const LEAST_DURATION_MS = 30_000;

/**
 * Measures what fleets use, for the sizing table of the documentation. Fleets that fit on the machine are measured,
 * and the others are computed.
 */
export const sizing: Bench = {
  name: "sizing",
  title: "the sizing table: agents, replicas, cores, memory, and what Postgres writes",
  async run(context) {
    const fleets: SizedFleet[] = [];
    for (const { share, replicas } of PARTS) {
      const agents = Math.round(context.size.agents * share);
      if (agents > MOST_AGENTS_A_PROCESS * replicas) throw new RangeError("AGENTS exceeds what one replica can hold");
      fleets.push(await measure(context, agents, replicas));
    }
    const formula = fitSizing(fleets);
    const alone = fleets.filter(({ replicas }) => replicas === 1);
    const computed = SIZES.filter((agents) => !alone.some((fleet) => fleet.agents === agents));
    const rows = [...alone.map(measuredSizing), ...computed.map((agents) => computeSizing(formula, agents))];
    const [cpu] = cpus();
    console.log(`\nBeats every ${context.size.intervalMs / 1_000} s, on ${cpus().length} times ${cpu?.model}:\n`);
    console.log(formatSizing(rows.toSorted((left, right) => left.agents - right.agents)));
    console.log(`\nThe formula, with ${AGENTS_A_REPLICA} agents per replica:\n`);
    for (const [name, { fixed, each }] of Object.entries(formula)) {
      console.log(`  ${name.padEnd(18)} ${fixed.toPrecision(3)} + ${each.toPrecision(3)} each`);
    }
    return fleets.map(figureOf);
  },
};

async function measure(outer: BenchContext, agents: number, replicas: number): Promise<SizedFleet> {
  const context = new BenchContext(outer.size);
  outer.atEnd(() => context.end());
  const { intervalMs, durationMs } = context.size;
  const fleet = await Fleet.start(context, { ...FULL_SIZE, agents, replicas, intervalMs });
  const { url } = fleet.database;
  // Flush the writes left over from connecting, because otherwise they would count as writes at rest.
  await withClient(url, (client) => client.query("vacuum analyze"));
  await withClient(url, (client) => client.query("checkpoint"));
  await delay(SETTLE_MS);
  const before = { cpu: fleet.cpuSeconds(), wal: await walBytes(url), atMs: performance.now() };
  await delay(Math.max(LEAST_DURATION_MS, durationMs));
  const seconds = (performance.now() - before.atMs) / 1_000;
  const used = cpuBetween(before.cpu, fleet.cpuSeconds());
  const written = (await walBytes(url)) - before.wal;
  // Measure before garbage is collected, because a machine must have this much memory.
  const replicaBytes = fleet.replicas.reduce((sum, { server }) => sum + server.residentBytes(), 0);
  const { replicas: replicaSeconds, postgres } = fleet.reconnects;
  const sized = {
    ...{ agents, replicas, replicaBytes },
    replicaCores: used.replicas / seconds,
    postgresCores: used.postgres / seconds,
    walBytesPerSecond: written / seconds,
    reconnectMsEach: ((replicaSeconds + postgres) / agents) * 1_000,
    databaseBytes: await databaseBytes(url),
  };
  await context.end();
  return sized;
}

function figureOf({ agents, replicas, replicaCores, postgresCores }: SizedFleet): Figure {
  return {
    figure: `${agents} agents on ${replicas} replicas, with Postgres`,
    measured: replicaCores + postgresCores,
    unit: "cores",
    against: "one core",
    compared: 1,
    target: "",
  };
}

async function walBytes(url: string): Promise<number> {
  return numberOf(url, "select wal_bytes::float8 as value from pg_stat_wal");
}

async function databaseBytes(url: string): Promise<number> {
  return numberOf(url, "select pg_database_size(current_database())::float8 as value");
}

async function numberOf(url: string, query: string): Promise<number> {
  const { rows } = await withClient(url, (client) => client.query(query));
  return Number(rows[0]?.value ?? 0);
}
