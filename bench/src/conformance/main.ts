import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Outcome, runScenario, type Surroundings } from "./run-scenario.ts";
import { leastMs, readScenarios, type Scenario } from "./scenario.ts";

const HELP = `Test an agent with the scenarios of sdk/conformance.

Usage: node main.js [--only NAME,...] [--at-once N] [--within SECONDS] -- PROGRAM [ARGUMENT...]

The program is started with --server HOST:PORT, --name ID, --state-dir DIRECTORY and --clock-file FILE. It registers at
the server as the node ID, and keeps its state in the directory. If the file exists, it contains the milliseconds by
which the program must shift its wall clock. SIGTERM asks it to leave. Each step must happen within 90 seconds, or
within SECONDS.`;
const FOLDER = fileURLToPath(new URL("../../../sdk/conformance/scenarios", import.meta.url));
const SPLIT = process.argv.indexOf("--");
const OWN_WORDS = process.argv.slice(2, SPLIT < 0 ? undefined : SPLIT);
const COMMAND = SPLIT < 0 ? [] : process.argv.slice(SPLIT + 1);

/** The number of scenarios that run at the same time. They mostly wait, some of them for half a minute. */
const AT_ONCE = 12;
/** The time limit of a step, in seconds. It is long, so that a busy machine does not look like a broken agent. */
const WITHIN_S = 90;

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    args: OWN_WORDS,
    options: {
      only: { type: "string" },
      "at-once": { type: "string" },
      within: { type: "string" },
      help: { type: "boolean" },
    },
  });
  const named = values.only?.split(",");
  const all = await readScenarios(FOLDER);
  const chosen = all.filter(({ name }) => named === undefined || named.includes(name));
  if (COMMAND.length === 0 || values.help === true || chosen.length === 0) {
    console.log(`${HELP}\n\nScenarios:`);
    for (const { name, checks } of all) console.log(`  ${name.padEnd(26)} ${checks}`);
    return values.help === true;
  }
  const root = await mkdtemp(join(tmpdir(), "rollcall-conformance-"));
  await chmod(root, 0o711);
  try {
    const surroundings = { root, withinMs: Number(values.within ?? WITHIN_S) * 1_000 };
    const outcomes = await runAll(chosen, surroundings, Number(values["at-once"] ?? AT_ONCE));
    const passed = outcomes.filter((one) => one.passed).length;
    console.log(`${passed} of ${outcomes.length} scenarios passed`);
    return passed === outcomes.length;
  } finally {
    await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

async function runAll(scenarios: readonly Scenario[], at: Surroundings, atOnce: number): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  // Start the longest scenarios first, so that the run does not end with a single long scenario.
  const waiting = [...scenarios].sort((one, other) => leastMs(other) - leastMs(one));
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const outcome = await runScenario(next, { name: "agent", command: COMMAND }, at);
      outcomes.push(outcome);
      const result = outcome.passed ? "passed" : "FAILED";
      console.log(`${result} ${outcome.scenario} (${(outcome.tookMs / 1_000).toFixed(1)} s)`);
      for (const problem of outcome.problems) console.log(`    ${problem}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return outcomes;
}

process.exitCode = (await main()) ? 0 : 1;
