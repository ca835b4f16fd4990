import { setTimeout as delay } from "node:timers/promises";
import { silentLogger, systemClock } from "@rollcall/process";
import { EventFeed, openStore } from "@rollcall/store";
import { type Bench, BenchContext } from "../bench-context.ts";
import type { FleetSize } from "../drills/drill.ts";
import { Fleet } from "../drills/fleet.ts";
import { MOST_AGENTS_A_PROCESS } from "../load/paced-loads.ts";
import { type Figure, percentile } from "../report.ts";

const UNHEALTHY_AFTER_MS = 10_000;
const INTERVAL_MS = 3_000;
const FEW = 100;
const USUAL = 10_000;
const MOST_VICTIMS = 300;
const AIM_MS = 300;
const ARRIVE_WITHIN_MS = 60_000;

/** Measures the time from the deadline of a dead node until its death is known everywhere. */
export const detection: Bench = {
  name: "detection",
  title: "agents killed at random moments: time from the deadline until their nodes are UNHEALTHY",
  async run(context) {
    const figures: Figure[] = [];
    const { agents: many } = context.size;
    // Sizes below the usual one are for trying the benchmark out.
    const sizes = many < USUAL ? [FEW, many] : [FEW, many, MOST_AGENTS_A_PROCESS];
    for (const agents of new Set(sizes)) figures.push(...(await measure(context, agents)));
    return figures;
  },
};

interface Arrival {
  readonly committedAtMs: number;
  readonly arrivedAtMs: number;
}

async function measure(outer: BenchContext, agents: number): Promise<readonly Figure[]> {
  const context = new BenchContext(outer.size);
  outer.atEnd(() => context.end());
  const size = {
    agents,
    replicas: 1,
    intervalMs: INTERVAL_MS,
    unhealthyAfterMs: UNHEALTHY_AFTER_MS,
  };
  const fleet = await Fleet.start(context, size);
  const figures = await detectionDelays(context, fleet, size);
  await context.end();
  return figures;
}

/**
 * Kills a few agents of a fleet at random moments. Returns, for each node, the time from its deadline until it
 * was known to be dead.
 */
export async function detectionDelays(
  context: BenchContext,
  fleet: Fleet,
  { agents, unhealthyAfterMs }: FleetSize,
): Promise<readonly Figure[]> {
  const arrivals = await watch(context, fleet.database.url);
  const killed = await killAtRandom(fleet, agents, context.size.durationMs);
  const limitMs = Date.now() + unhealthyAfterMs + ARRIVE_WITHIN_MS;
  while (arrivals.size < killed.length && Date.now() < limitMs) await delay(50);
  const told = killed.flatMap(({ nodeId, lastSentAtMs }) => {
    const arrival = arrivals.get(nodeId);
    return arrival === undefined ? [] : [{ ...arrival, deadlineMs: lastSentAtMs + unhealthyAfterMs }];
  });
  if (told.length < killed.length) {
    context.progress(`${killed.length - told.length} of ${killed.length} nodes were not declared`);
  }
  const committed = told.map(({ committedAtMs, deadlineMs }) => committedAtMs - deadlineMs);
  const arrived = told.map(({ arrivedAtMs, deadlineMs }) => arrivedAtMs - deadlineMs);
  const aim = { unit: "ms", against: "aim", compared: AIM_MS, target: "1 or less" };
  const of = `${agents.toLocaleString("en")} agents`;
  return [
    { figure: `deadline to commit, p99, ${of}`, measured: p99(committed), ...aim },
    { figure: `deadline to watcher, p99, ${of}`, measured: p99(arrived), ...aim },
  ];
}

/** Records the time at which each node was declared unhealthy, as seen by a follower of the log. */
async function watch(context: BenchContext, url: string): Promise<ReadonlyMap<string, Arrival>> {
  const log = silentLogger;
  const store = await openStore({ url, applicationName: "bench watcher", poolSize: 2, log });
  const feed = new EventFeed({ store: store.reserved, clock: systemClock, log });
  context.atEnd(async () => {
    await feed.close();
    await store.close();
  });
  const arrivals = new Map<string, Arrival>();
  feed.follow({
    interest: { types: new Set(["node.health.changed"]), displaced: new Set() },
    deliver: (events) => {
      const arrivedAtMs = Date.now();
      for (const { subject, atMs, after } of events) {
        if (!JSON.stringify(after).includes("UNHEALTHY")) continue;
        if (!arrivals.has(subject)) arrivals.set(subject, { committedAtMs: atMs, arrivedAtMs });
      }
    },
  });
  await feed.start();
  return arrivals;
}

async function killAtRandom(fleet: Fleet, agents: number, withinMs: number) {
  const victims = Math.min(MOST_VICTIMS, Math.floor(agents / 3));
  const pauseMs = withinMs / victims;
  const killed: { readonly nodeId: string; readonly lastSentAtMs: number }[] = [];
  for (let victim = 0; victim < victims; victim += 1) {
    killed.push(...(await fleet.kill([victim * Math.floor(agents / victims)])));
    await delay(pauseMs * 2 * Math.random());
  }
  return killed;
}

function p99(samples: readonly number[]): number {
  return percentile(Float64Array.from(samples), 0.99);
}
