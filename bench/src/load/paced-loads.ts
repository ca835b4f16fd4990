import type { BenchContext } from "../bench-context.ts";
import { LoadProcess } from "./load-process.ts";
import type { PacedTerms } from "./paced-agent.ts";
import type { PacedOrder, PacedOutcome } from "./paced-load.ts";

/**
 * The maximum number of agents in one process. A process could open 20,000 files on the machine
 * where this limit was chosen.
 */
export const MOST_AGENTS_A_PROCESS = 18_000;

/**
 * The agents of a fleet, for the nodes from index 0, in as many processes as needed. The processes
 * end with the benchmark.
 */
export class PacedLoads {
  readonly #agents: number;
  readonly #loads: readonly LoadProcess<PacedOrder, PacedOutcome>[];

  constructor(context: BenchContext, agents: number) {
    this.#agents = agents;
    const loads = Math.ceil(agents / MOST_AGENTS_A_PROCESS);
    this.#loads = Array.from({ length: loads }, () => new LoadProcess("paced-load"));
    for (const load of this.#loads) context.atEnd(() => load.stop());
  }

  /** Start all agents. They connect at the times that `comesAtMs` returns. */
  async run(terms: PacedTerms): Promise<void> {
    const fleet = this.#agents;
    await this.#order((load) => {
      const firstNode = load * MOST_AGENTS_A_PROCESS;
      const agents = Math.min(MOST_AGENTS_A_PROCESS, fleet - firstNode);
      return { kind: "run", firstNode, agents, fleet, ...terms };
    });
  }

  /** Send the same order to each process. Returns the combined result of all agents. */
  order(order: Exclude<PacedOrder, { kind: "run" }>): Promise<PacedOutcome> {
    return this.#order(() => order);
  }

  /** Stop the processes and all their agents. */
  async stop(): Promise<void> {
    await Promise.all(this.#loads.map((load) => load.stop()));
  }

  async #order(orderOf: (load: number) => PacedOrder): Promise<PacedOutcome> {
    const outcomes = await Promise.all(this.#loads.map((load, index) => load.order(orderOf(index))));
    return {
      held: outcomes.reduce((sum, { held }) => sum + held, 0),
      reconnects: outcomes.reduce((sum, { reconnects }) => sum + reconnects, 0),
      gaps: outcomes.flatMap(({ gaps }) => gaps),
      killed: outcomes.flatMap(({ killed }) => killed),
      work: outcomes[0]?.work ?? { running: 0, starts: 0, stops: 0, ends: 0 },
    };
  }
}
