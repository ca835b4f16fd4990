import { type AgentWorkFrame, type MachineWorld, SimulatedKeeper, WorkAgent } from "@rollcall/simulation";
import type { PacedWork } from "./paced-agent.ts";

/** The number of executions that machines have started, stopped and ended. */
export interface WorkFigures {
  /** The number of running processes. */
  readonly running: number;
  readonly starts: number;
  /** The number of processes that were asked to stop. */
  readonly stops: number;
  readonly ends: number;
}

/**
 * Machines that run executions without processes. Agents and keepers decide with the shipped code, in real time and
 * over real streams, but the executions that they start are only counted.
 */
export class PacedMachines {
  #starts = 0;
  #stops = 0;
  #ends = 0;

  get figures(): WorkFigures {
    const [starts, stops, ends] = [this.#starts, this.#stops, this.#ends];
    return { running: starts - ends, starts, stops, ends };
  }

  /** Add the machine of this node. */
  add(nodeId: string): PacedWork {
    const world: MachineWorld = {
      nowMs: () => performance.now(),
      wallMs: () => Math.floor(performance.timeOrigin + performance.now()),
      random: Math.random,
      after: runAt,
      started: () => {
        this.#starts += 1;
      },
      ended: () => {
        this.#ends += 1;
      },
      stopping: () => {
        this.#stops += 1;
      },
      // All executions run until they are stopped.
      lifeOf: () => null,
    };
    const agent = new WorkAgent(new SimulatedKeeper(nodeId, world), world, () => true);
    return {
      get toldDigest() {
        return agent.toldDigest;
      },
      opened: (send) => agent.opened((frame) => send(toRequest(frame))),
      receive: (frame) => {
        if (frame.case === "executions" || frame.case === "spec" || frame.case === "reportAck") agent.receive(frame);
      },
      seen: () => agent.seen(),
      closed: () => agent.closed(),
    };
  }
}

/**
 * Run a function after a delay. A timer can fire too early, because it counts from the start of its event-loop
 * iteration, which may have been long ago.
 */
function runAt(ms: number, run: () => void): void {
  const dueMs = performance.now() + ms;
  const look = (): void => {
    const leftMs = dueMs - performance.now();
    if (leftMs > 0) setTimeout(look, Math.ceil(leftMs));
    else run();
  };
  setTimeout(look, Math.ceil(ms));
}

function toRequest(frame: AgentWorkFrame): Parameters<Parameters<PacedWork["opened"]>[0]>[0] {
  switch (frame.kind) {
    case "report":
      return { case: "executionReport", value: frame.report };
    case "want-specs":
      return { case: "wantSpecs", value: { digests: frame.digests.map((digest) => new Uint8Array(digest)) } };
  }
}
