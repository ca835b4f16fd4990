import type { AgentWorkFrame } from "@rollcall/health/simulation";
import { type MachineWorld, SimulatedKeeper } from "../simulation/simulated-keeper.ts";
import { WorkAgent } from "../simulation/simulated-work-agent.ts";
import type { PacedWork } from "./paced-agent.ts";

/** What machines have done. */
export interface WorkFigures {
  /** Processes that run. */
  readonly running: number;
  readonly starts: number;
  /** Processes that were told to stop. */
  readonly stops: number;
  readonly ends: number;
}

/**
 * Machines that run work without processes: agents and keepers decide as they are shipped, in real time and over real
 * streams, and what they start is counted.
 */
export class PacedMachines {
  #starts = 0;
  #stops = 0;
  #ends = 0;

  get figures(): WorkFigures {
    const [starts, stops, ends] = [this.#starts, this.#stops, this.#ends];
    return { running: starts - ends, starts, stops, ends };
  }

  /** A machine of this node. */
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
      // All run on until they are stopped.
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

/** Run something when so much time has passed: a timer alone counts from before, where its turn took long. */
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
