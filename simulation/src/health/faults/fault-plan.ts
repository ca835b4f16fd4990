import { FLAPPING_OUTAGES } from "@rollcall/domain";
import type { FaultKind, SimulationOptions } from "../simulation-options.ts";
import type { World } from "../world.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** The objects that faults act on. */
export interface Disturbed extends World {
  startReplica(slot: number): void;
  crashReplica(slot: number): void;
  stopReplica(slot: number, ms: number): void;
  restartReplica(slot: number, downMs: number): void;
  /** Run a second agent with a copy of this agent's state directory for a while. */
  cloneAgent(agent: number, ms: number): void;
}

/** Causes faults. Their kinds, times and durations are drawn from the simulation's seed. */
export class FaultPlan {
  readonly #simulation: Disturbed;
  readonly #options: SimulationOptions;
  #isOver = false;
  #count = 0;
  /** Earliest time of the next cut between a replica and the store. */
  #nextCutAtMs = 0;

  constructor(simulation: Disturbed, options: SimulationOptions) {
    this.#simulation = simulation;
    this.#options = options;
  }

  /** Number of faults so far. */
  get count(): number {
    return this.#count;
  }

  begin(): void {
    const { schedule, random } = this.#simulation;
    schedule.after(random() * 2 * this.#options.faultEveryMs, () => {
      if (this.#isOver) return;
      const kind = this.#options.faults[Math.floor(random() * this.#options.faults.length)];
      const isTooSoon = kind === "replica-cut-from-record" && schedule.nowMs < this.#nextCutAtMs;
      if (kind !== undefined && !isTooSoon) this.#cause(kind);
      this.begin();
    });
  }

  /** Stop causing faults. Everything that is down restarts as planned. */
  end(): void {
    this.#isOver = true;
  }

  #cause(kind: FaultKind): void {
    this.#count += 1;
    switch (kind) {
      case "agent-crash":
      case "agent-stop":
      case "agent-goodbye":
      case "agent-move":
        this.#disturbAgents(kind);
        return;
      case "agent-flap":
        this.#flap();
        return;
      case "agent-cloned": {
        const [agent] = this.#someAgents(0.01);
        this.#simulation.cloneAgent(agent, this.#between(MINUTE_MS, 8 * MINUTE_MS));
        return;
      }
      case "agents-cut":
      case "frames-lost":
        this.#disturbNetwork(kind);
        return;
      case "replica-crash":
      case "replica-stop":
      case "replica-restart":
      case "all-replicas-crash":
        this.#disturbReplicas(kind);
        return;
      case "replica-cut-from-record":
      case "replicas-cut":
      case "store-away":
        this.#disturbRecord(kind);
        return;
      case "work":
        this.#simulation.work?.disturb();
    }
  }

  #disturbAgents(kind: "agent-crash" | "agent-stop" | "agent-goodbye" | "agent-move"): void {
    const { agents, schedule } = this.#simulation;
    for (const agent of agents.slice(...this.#someAgents(this.#simulation.work === null ? 0.05 : 0.15))) {
      const ms = this.#between(SECOND_MS, 8 * MINUTE_MS);
      if (kind === "agent-move") {
        agent.move();
      } else if (kind === "agent-stop") {
        agent.stop();
        schedule.after(ms, () => agent.resume());
      } else {
        if (kind === "agent-crash") agent.crash();
        else agent.goodbye();
        schedule.after(ms, () => agent.start(SECOND_MS));
      }
    }
  }

  /** Stop and resume an agent until its node flaps. Each stop is long enough for UNHEALTHY. */
  #flap(): void {
    const { agents, schedule, random } = this.#simulation;
    const agent = agents[Math.floor(random() * agents.length)];
    if (agent === undefined) return;
    let atMs = 0;
    for (let outage = 0; outage < FLAPPING_OUTAGES; outage += 1) {
      schedule.after(atMs, () => agent.stop());
      atMs += this.#between(95 * SECOND_MS, 2 * MINUTE_MS);
      schedule.after(atMs, () => agent.resume());
      atMs += this.#between(20 * SECOND_MS, MINUTE_MS);
    }
  }

  #disturbNetwork(kind: "agents-cut" | "frames-lost"): void {
    const { network, schedule } = this.#simulation;
    if (kind === "frames-lost") {
      network.lostShare = this.#between(0.01, 0.3);
      const ms = this.#between(10 * SECOND_MS, 5 * MINUTE_MS);
      schedule.after(ms, () => {
        network.lostShare = 0;
      });
      return;
    }
    const [fromAgent, toAgent] = this.#someAgents(1);
    const isEverywhere = this.#simulation.random() < 0.3;
    const slot = isEverywhere ? null : this.#slot();
    network.cutAgents({ slot, fromAgent, toAgent }, this.#between(5 * SECOND_MS, 3 * MINUTE_MS));
  }

  #disturbReplicas(kind: "replica-crash" | "replica-stop" | "replica-restart" | "all-replicas-crash"): void {
    const simulation = this.#simulation;
    if (kind === "replica-stop") {
      simulation.stopReplica(this.#slot(), this.#between(SECOND_MS, 2 * MINUTE_MS));
      return;
    }
    const all = kind === "all-replicas-crash";
    const slots = all ? Array.from({ length: simulation.slots }, (_, slot) => slot) : [this.#slot()];
    for (const slot of slots) {
      const downMs = this.#between(SECOND_MS, all ? 20 * SECOND_MS : MINUTE_MS);
      if (kind === "replica-restart") {
        simulation.restartReplica(slot, downMs);
      } else {
        simulation.crashReplica(slot);
        simulation.schedule.after(downMs, () => simulation.startReplica(slot));
      }
    }
  }

  #disturbRecord(kind: "replica-cut-from-record" | "replicas-cut" | "store-away"): void {
    const { network, schedule } = this.#simulation;
    if (kind === "replicas-cut") {
      network.cutFromOthers(this.#slot(), this.#between(5 * SECOND_MS, 3 * MINUTE_MS));
    } else if (kind === "replica-cut-from-record") {
      const slot = this.#slot();
      const ms = this.#between(5 * SECOND_MS, 3 * MINUTE_MS);
      network.cutFromRecord(slot, ms);
      const { betweenCutsMs } = this.#options;
      if (betweenCutsMs !== undefined) this.#nextCutAtMs = schedule.nowMs + ms + betweenCutsMs;
    } else {
      network.storeAway += 1;
      schedule.after(this.#between(5 * SECOND_MS, 10 * MINUTE_MS), () => {
        network.storeAway -= 1;
      });
    }
  }

  #slot(): number {
    return Math.floor(this.#simulation.random() * this.#simulation.slots);
  }

  /** A random range of adjacent agents, at most this share of all. */
  #someAgents(share: number): [number, number] {
    const { agents, random } = this.#simulation;
    const count = Math.max(1, Math.floor(random() * share * agents.length));
    const from = Math.floor(random() * (agents.length - count + 1));
    return [from, from + count];
  }

  /**
   * A random number, distributed evenly on a logarithmic scale, so that short times are as likely as long
   * ones.
   */
  #between(least: number, most: number): number {
    return least * (most / least) ** this.#simulation.random();
  }
}
