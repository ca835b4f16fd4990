import { setTimeout as delay } from "node:timers/promises";
import { returnAimMs } from "../aims.ts";
import type { Bench, BenchContext } from "../bench-context.ts";
import { cpuBetween, Fleet, FULL_SIZE } from "../drills/fleet.ts";
import { comesAtMs } from "../load/coming-in.ts";
import { PacedLoads } from "../load/paced-loads.ts";
import type { Figure } from "../report.ts";
import { startBareServer } from "../servers/bare-grpcjs.ts";
import type { Candidate } from "../servers/server-process.ts";

const REPLICAS = 6;
const AIM_PACED_MS = 1.2;
const AIM_AT_ONCE_MS = 2.5;
const HELD_LATE_MS = 60_000;

/**
 * What a node that comes in costs the replicas and Postgres together: at a rate, beside as many bare servers, and as
 * fast as the machine goes.
 */
export const returning: Bench = {
  name: "return",
  title: `CPU of a node that comes in, ${REPLICAS} replicas and Postgres, at 200 a second and as fast as it goes`,
  async run(context) {
    const bareMs = await comeToBareServers(context);
    const fleet = await Fleet.start(context, { ...FULL_SIZE, replicas: REPLICAS, agents: context.size.agents });
    const paced = fleet.cameIn;
    const atOnce = await comeBackAtOnce(context, fleet);
    return [
      ...figuresOf("at 200 a second", paced, context, AIM_PACED_MS),
      {
        figure: "at 200 a second, the replicas alone",
        measured: (paced.replicas / context.size.agents) * 1_000,
        unit: "ms",
        against: "bare grpc-js",
        beside: bareMs,
        target: "",
      },
      ...figuresOf("all at once", atOnce, context, AIM_AT_ONCE_MS),
      {
        figure: "all at once, until all are HEALTHY",
        measured: atOnce.tookMs / 1_000,
        unit: "s",
        against: "aim",
        beside: returnAimMs(context.size.agents) / 1_000,
        target: "1 or less",
      },
    ];
  },
};

interface Cost {
  readonly tookMs: number;
  readonly replicas: number;
  readonly postgres: number;
}

/** The same agents at the same pace. Answers the CPU of one in milliseconds. */
async function comeToBareServers(context: BenchContext): Promise<number> {
  const { agents } = context.size;
  const { intervalMs } = FULL_SIZE;
  const bare: Candidate[] = [];
  for (let count = 0; count < REPLICAS; count += 1) bare.push(await startBareServer(context));
  const cpuSeconds = () => bare.reduce((sum, { server }) => sum + server.cpuSeconds(), 0);
  const loads = new PacedLoads(context, agents);
  const before = cpuSeconds();
  const endMs = performance.now() + comesAtMs(agents, intervalMs) + HELD_LATE_MS;
  await loads.run({ ports: bare.map(({ port }) => port), isSpread: true, intervalMs, patienceMs: intervalMs * 2 });
  for (;;) {
    const { held } = await loads.order({ kind: "report", gapMs: 0 });
    if (held === agents) break;
    if (performance.now() > endMs) throw new Error(`the bare servers hold ${held} of ${agents} agents`);
    await delay(100);
  }
  const each = ((cpuSeconds() - before) / agents) * 1_000;
  context.progress(`bare grpc-js: ${agents} agents held, each for ${each.toFixed(1)} ms of CPU`);
  await loads.stop();
  await Promise.all(bare.map(({ server }) => server.stop()));
  return each;
}

/** Replicas that are killed and serve again; their own start is not counted. */
async function comeBackAtOnce(context: BenchContext, fleet: Fleet): Promise<Cost> {
  await fleet.restartAll(0);
  const before = fleet.cpuSeconds();
  const tookMs = await fleet.recover();
  const used = cpuBetween(before, fleet.cpuSeconds());
  context.progress(`all HEALTHY again ${(tookMs / 1_000).toFixed(1)} s after the replicas served`);
  return { tookMs, ...used };
}

function figuresOf(name: string, cost: Cost, { size }: BenchContext, beside: number): readonly Figure[] {
  const each = (seconds: number) => (seconds / size.agents) * 1_000;
  const aim = { unit: "ms", against: "aim", beside };
  const together = each(cost.replicas + cost.postgres);
  return [
    { figure: `${name}, an agent`, measured: together, ...aim, target: "1 or less" },
    { figure: `${name}, the replicas alone`, measured: each(cost.replicas), ...aim, target: "" },
    { figure: `${name}, Postgres alone`, measured: each(cost.postgres), ...aim, target: "" },
  ];
}
