import { BenchContext } from "../bench-context.ts";
import { describeMachineTime, readMachineTime } from "../machine-time.ts";
import { brokenAgents } from "./broken-agents-drill.ts";
import { churn } from "./churn-drill.ts";
import { clock } from "./clock-drill.ts";
import { type Drill, type DrillOptions, fleetDrill } from "./drill.ts";
import { histories } from "./histories/histories-drill.ts";
import { hostile, hostileTls } from "./hostile-drill.ts";
import { kits } from "./kits-drill.ts";
import { deadPath, network } from "./network-drills.ts";
import { poisonedSessions } from "./poisoned-sessions-drill.ts";
import { killAll, stop, stopAlone } from "./replica-drills.ts";
import { restoredWork } from "./restored-work-drill.ts";
import { schedulerCrashes } from "./scheduler-crashes-drill.ts";
import { simulation } from "./simulation-drill.ts";
import { slowDependencies } from "./slow/slow-dependencies-drill.ts";
import { postgres } from "./store-drills.ts";
import { webhooks } from "./webhooks-drill.ts";

// Usage: node main.js [--short] [--no-clock] [NAME...]. Without a name, it prints the list of
// drills.
const DRILLS: readonly Drill[] = [
  ...[stop, stopAlone, network, deadPath, postgres, clock, killAll].map(fleetDrill),
  hostile,
  hostileTls,
  poisonedSessions,
  slowDependencies,
  schedulerCrashes,
  restoredWork,
  brokenAgents,
  webhooks,
  histories,
  kits,
  churn,
  simulation,
];
const NO_SIZE = { agents: 0, nodes: 0, events: 0, intervalMs: 0, hours: 0, seed: 0, durationMs: 0 };

async function run(drill: Drill, options: DrillOptions): Promise<boolean> {
  const context = new BenchContext(NO_SIZE);
  const interrupt = (): void => {
    void context.end().finally(() => process.exit(130));
  };
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  console.error(`${drill.name}: ${drill.title}`);
  const before = readMachineTime();
  try {
    const { passed, text } = await drill.run(context, options);
    const machine = describeMachineTime(before, readMachineTime());
    console.log(`${drill.name} (${options.length}) ${text}\n${machine}\n`);
    return passed;
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
    await context.end();
  }
}

const words = process.argv.slice(2);
const { AGENTS } = process.env;
const options: DrillOptions = {
  length: words.includes("--short") ? "short" : "full",
  ...(AGENTS === undefined ? {} : { agents: Number(AGENTS) }),
  limitsTime: !words.includes("--no-clock") && !words.includes("--short"),
};
const names = words.filter((word) => !word.startsWith("--"));
const chosen = DRILLS.filter(({ name }) => names.includes(name) || names.includes("all"));
if (chosen.length === 0) {
  console.log("make drill NAME=... [SHORT=1] [AGENTS=1000] [SEED=1], with one of these, or all:");
  for (const { name, title } of DRILLS) console.log(`  ${name.padEnd(18)} ${title}`);
  if (names.length > 0) process.exitCode = 2;
}
for (const drill of chosen) if (!(await run(drill, options))) process.exitCode = 1;
