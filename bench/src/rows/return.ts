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
 * Measures what a connecting node costs replicas and Postgres together: first at a fixed rate, compared with bare
 * servers, and then as fast as the machine can.
 */
export const returning: Bench = {
  name: "return",
  title: `CPU of a connecting node, ${REPLICAS} replicas and Postgres, at 200 per second and as fast as possible`,
  async run(context) {
    const bareMs = await comeToBareServers(context);
    const fleet = await Fleet.start(context, { ...FULL_SIZE, replicas: REPLICAS, agents: context.size.agents });
    const paced = fleet.reconnects;
    const atOnce = await comeBackAtOnce(context, fleet);
    return [
      ...figuresOf("at 200 per second", paced, context, AIM_PACED_MS),
      {
        figure: "at 200 per second, only the replicas",
        measured: (paced.replicas / context.size.agents) * 1_000,
        unit: "ms",
        against: "bare grpc-js",
        compared: bareMs,
        target: "",
      },
      ...figuresOf("all at once", atOnce, context, AIM_AT_ONCE_MS),
      {
        figure: "all at once, until all are HEALTHY",
        measured: atOnce.tookMs / 1_000,
        unit: "s",
        against: "aim",
        compared: returnAimMs(context.size.agents) / 1_000,
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

/** Connect the same agents at the same pace to bare servers. Returns the CPU per agent in milliseconds. */
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
    if (performance.now() > endMs) throw new Error(`${held} of ${agents} agents are connected to the bare servers`);
    await delay(100);
  }
  const each = ((cpuSeconds() - before) / agents) * 1_000;
  context.progress(`bare grpc-js: ${agents} agents connected, ${each.toFixed(1)} ms of CPU each`);
  await loads.stop();
  await Promise.all(bare.map(({ server }) => server.stop()));
  return each;
}

/** Kill the replicas, restart them, and measure the return of all agents, excluding the startup of the replicas. */
async function comeBackAtOnce(context: BenchContext, fleet: Fleet): Promise<Cost> {
  await fleet.restartAll(0);
  const before = fleet.cpuSeconds();
  const tookMs = await fleet.recover();
  const used = cpuBetween(before, fleet.cpuSeconds());
  context.progress(`all HEALTHY again ${(tookMs / 1_000).toFixed(1)} s after the replicas served`);
  return { tookMs, ...used };
}

function figuresOf(name: string, cost: Cost, { size }: BenchContext, compared: number): readonly Figure[] {
  const each = (seconds: number) => (seconds / size.agents) * 1_000;
  const aim = { unit: "ms", against: "aim", compared };
  const together = each(cost.replicas + cost.postgres);
  return [
    { figure: `${name}, per agent`, measured: together, ...aim, target: "1 or less" },
    { figure: `${name}, only the replicas`, measured: each(cost.replicas), ...aim, target: "" },
    { figure: `${name}, only Postgres`, measured: each(cost.postgres), ...aim, target: "" },
  ];
}
