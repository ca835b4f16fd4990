import { returnAimMs } from "../aims.ts";
import type { Bench, BenchContext } from "../bench-context.ts";
import { cpuBetween, Fleet, FULL_SIZE } from "../drills/fleet.ts";
import type { Figure } from "../report.ts";

const REPLICAS = 6;
const AIM_PACED_MS = 1.2;
const AIM_AT_ONCE_MS = 2.5;

/** What a node that comes in costs the replicas and Postgres together: at a rate, and as fast as the machine goes. */
export const returning: Bench = {
  name: "return",
  title: `CPU of a node that comes in, ${REPLICAS} replicas and Postgres, at 200 a second and as fast as it goes`,
  async run(context) {
    const fleet = await Fleet.start(context, { ...FULL_SIZE, replicas: REPLICAS, agents: context.size.agents });
    const paced = fleet.cameIn;
    const atOnce = await comeBackAtOnce(context, fleet);
    return [
      ...figuresOf("at 200 a second", paced, context, AIM_PACED_MS),
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
