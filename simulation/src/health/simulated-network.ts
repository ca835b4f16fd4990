import type { Schedule } from "./schedule.ts";

/** A range of agents that cannot reach a replica in either direction. */
interface Cut {
  /** The slot of the replica; null for all replicas. */
  readonly slot: number | null;
  readonly fromAgent: number;
  readonly toAgent: number;
}

const USUAL_DELAY_MS = 250;
const LONGEST_DELAY_MS = 8_000;
const SLOW_SHARE = 0.01;
const DUPLICATED_SHARE = 0.005;

/**
 * The network between agents, replicas and the store. It delays, duplicates, reorders and loses frames.
 */
export class SimulatedNetwork {
  readonly #schedule: Schedule;
  readonly #random: () => number;
  readonly #cuts = new Set<Cut>();
  readonly #cutFromRecord = new Map<number, number>();
  readonly #cutFromOthers = new Map<number, number>();
  /** The share of frames lost at random, in addition to those lost to a cut. */
  lostShare = 0;
  /** Whether random loss, delay and duplication are off. */
  isCalm = false;
  /** Number of current faults that make the store unavailable. */
  storeAway = 0;

  constructor(schedule: Schedule, random: () => number) {
    this.#schedule = schedule;
    this.#random = random;
  }

  /** Send one frame between an agent and a replica. */
  sendFrame(agent: number, slot: number, deliver: () => void): void {
    if (this.isCut(agent, slot) || this.#random() < this.lostShare) return;
    this.#schedule.after(this.#delayMs(), deliver);
    if (!this.isCalm && this.#random() < DUPLICATED_SHARE) this.#schedule.after(this.#delayMs(), deliver);
  }

  /** Whether nothing passes between an agent and a replica. */
  isCut(agent: number, slot: number): boolean {
    for (const { slot: cut, fromAgent, toAgent } of this.#cuts) {
      if ((cut === null || cut === slot) && agent >= fromAgent && agent < toAgent) return true;
    }
    return false;
  }

  /** The one-way delay to the store or to another replica. */
  callDelayMs(): number {
    return this.#delayMs() / 4;
  }

  reachesRecord(slot: number): boolean {
    return this.storeAway === 0 && !this.#cutFromRecord.has(slot);
  }

  reachesReplica(from: number, to: number): boolean {
    return !this.#cutFromOthers.has(from) && !this.#cutFromOthers.has(to);
  }

  cutAgents(cut: Cut, ms: number): void {
    this.#cuts.add(cut);
    this.#schedule.after(ms, () => this.#cuts.delete(cut));
  }

  cutFromRecord(slot: number, ms: number): void {
    this.#cutFor(this.#cutFromRecord, slot, ms);
  }

  cutFromOthers(slot: number, ms: number): void {
    this.#cutFor(this.#cutFromOthers, slot, ms);
  }

  #cutFor(cuts: Map<number, number>, slot: number, ms: number): void {
    cuts.set(slot, (cuts.get(slot) ?? 0) + 1);
    this.#schedule.after(ms, () => {
      const left = (cuts.get(slot) ?? 1) - 1;
      if (left === 0) cuts.delete(slot);
      else cuts.set(slot, left);
    });
  }

  #delayMs(): number {
    const share = this.#random();
    return share < SLOW_SHARE && !this.isCalm ? this.#random() * LONGEST_DELAY_MS : share * USUAL_DELAY_MS;
  }
}
