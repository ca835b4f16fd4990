import { type Bench, BenchContext, type BenchSize } from "./bench-context.ts";
import { describeMachineTime, readMachineTime } from "./machine-time.ts";
import { formatTable } from "./report.ts";
import { agentMemory } from "./rows/agent-memory.ts";
import { consoleBench } from "./rows/console.ts";
import { detection } from "./rows/detection.ts";
import { events } from "./rows/events.ts";
import { failover } from "./rows/failover.ts";
import { feed } from "./rows/feed.ts";
import { heartbeats } from "./rows/heartbeats.ts";
import { heartbeatsWithWork } from "./rows/heartbeats-with-work.ts";
import { listNodes } from "./rows/list-nodes.ts";
import { placement } from "./rows/placement.ts";
import { takeIn } from "./rows/reconnects.ts";
import { registrations } from "./rows/registrations.ts";
import { relay } from "./rows/relay.ts";
import { returning } from "./rows/return.ts";
import { scale } from "./rows/scale.ts";
import { returnModel } from "./rows/simulated/return-model.ts";
import { simulation } from "./rows/simulated/simulation.ts";
import { simulationWithWork } from "./rows/simulated/simulation-with-work.ts";
import { sizing } from "./rows/sizing.ts";
import { start } from "./rows/start.ts";
import { work, workMillion } from "./rows/work.ts";

const BENCHES: readonly Bench[] = [
  heartbeats,
  heartbeatsWithWork,
  takeIn,
  returning,
  returnModel,
  registrations,
  listNodes,
  events,
  feed,
  relay,
  start,
  agentMemory,
  simulation,
  simulationWithWork,
  placement,
  detection,
  failover,
  scale,
  sizing,
  work,
  workMillion,
  consoleBench,
];

const size: BenchSize = {
  agents: positive("AGENTS", 10_000),
  nodes: positive("NODES", 50_000),
  events: positive("EVENTS", 1_000_000),
  intervalMs: positive("INTERVAL", 15) * 1_000,
  hours: positive("HOURS", 48),
  seed: positive("SEED", 1 + Math.floor(Math.random() * 2 ** 31)),
  durationMs: positive("DURATION", 10) * 1_000,
};

function positive(variable: string, byDefault: number): number {
  const value = Number(process.env[variable] ?? byDefault);
  if (Number.isInteger(value) && value > 0) return value;
  throw new RangeError(`${variable} must be a whole number above 0`);
}

async function run(bench: Bench): Promise<void> {
  const context = new BenchContext(size);
  const interrupt = (): void => {
    void context.end().finally(() => process.exit(130));
  };
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  console.error(bench.title);
  const before = readMachineTime();
  try {
    const figures = await bench.run(context);
    const machine = describeMachineTime(before, readMachineTime());
    console.log(`\n${formatTable(`${bench.name}: ${bench.title}`, figures)}\n${machine}\n`);
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
    await context.end();
  }
}

const [name] = process.argv.slice(2);
const chosen = BENCHES.filter((bench) => name === undefined || bench.name === name);
if (chosen.length === 0) {
  console.error(`no benchmark ${name}; there are: ${BENCHES.map((one) => one.name).join(", ")}`);
  process.exitCode = 2;
}
for (const bench of chosen) await run(bench);
