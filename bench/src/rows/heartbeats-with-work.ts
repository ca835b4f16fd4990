import { type Bench, BenchContext } from "../bench-context.ts";
import { measure, startHealthService } from "./heartbeats.ts";

const EXECUTIONS = 20;
const ALLOWED = 1.2;
/**
 * The number of rounds. The two measurements alternate in each, so that a machine that slows down slows
 * both.
 */
const ROUNDS = 2;

/** Measures what running executions add to the cost of a heartbeat. */
export const heartbeatsWithWork: Bench = {
  name: "heartbeats-work",
  title: `Beats of agents with ${EXECUTIONS} running executions each, compared with agents without any`,
  async run(context) {
    let [withWork, without] = [0, 0];
    for (let round = 0; round < ROUNDS; round += 1) {
      without = Math.max(without, await acksPerCpuSecond(context, 0));
      withWork = Math.max(withWork, await acksPerCpuSecond(context, EXECUTIONS));
    }
    return [
      {
        ...{ figure: "CPU of a heartbeat", measured: 1_000_000 / withWork, unit: "µs" },
        ...{ against: "without executions", compared: 1_000_000 / without, target: `${ALLOWED} or less` },
      },
    ];
  },
};

/**
 * Measure with a separate store, which is stopped at the end. Returns the acknowledged Beats per second
 * of CPU.
 */
async function acksPerCpuSecond(context: BenchContext, executions: number): Promise<number> {
  const own = new BenchContext(context.size);
  context.atEnd(() => own.end());
  try {
    const measured = await measure(own, `${executions} executions each`, startHealthService, executions);
    return measured.acksPerCpuSecond;
  } finally {
    await own.end();
  }
}
