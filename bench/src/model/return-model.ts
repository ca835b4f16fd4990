import { HelloAdmission } from "@rollcall/domain";
import { fullJitter } from "@rollcall/process";

/** A fleet that has lost all replicas at once, and the machine that takes it in again. */
export interface ReturnPlan {
  readonly agents: number;
  readonly replicas: number;
  /** Of replicas and Postgres together. */
  readonly cores: number;
  /** CPU of an agent that is taken in, of replicas and Postgres together, its connection included. */
  readonly takeInMs: number;
  /** CPU of a connection whose agent is sent away. */
  readonly sendAwayMs: number;
  /** CPU of a heartbeat of those that are in again, which comes before everything else. */
  readonly heartbeatMs: number;
  readonly intervalMs: number;
  readonly hellosPerSecond: number;
  readonly helloQueue: number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

/** What became of it. */
export interface ReturnOutcome {
  /** From the moment at which the replicas serve until all agents are in; null when they never are. */
  readonly allInMs: number | null;
  /** Connections of an agent, on average: one when none is sent away. */
  readonly attemptsEach: number;
  /** The longest time that one waited for its Welcome, once its Hello was taken. */
  readonly longestWaitMs: number;
}

const STEP_MS = 50;
const LONGEST_MS = 3_600_000;
const BATCH = 200;
/** An agent gives a connection up that is not answered for so long. */
const PATIENCE_MS = 5_000;
/** And one on which there is no Welcome for so long. */
const WELCOME_PATIENCE_MS = 20_000;
/** As agents are spread that have found no replica for some seconds. */
const FIRST_WITHIN_MS = 4_000;
/** As the server spreads those that have the same turn. */
const SPREAD_MS = 1_000;
/** What each agent adds to what it is told. */
const BACKOFF = { baseMs: 1_000, maxMs: 20_000 };

/**
 * Plays the return in steps of simulated time. Admission and its times are the shipped ones; what work costs is given.
 * Replicas share the cores evenly, and a replica that has no CPU left answers in a later step.
 */
export function simulateReturn(plan: ReturnPlan): ReturnOutcome {
  return new Return(plan).run();
}

/** Who waits since when, and how often they have failed. */
interface Waiting {
  readonly fromMs: number;
  readonly failures: number;
}

/** One replica, and who waits for its Welcome. */
interface Desk {
  readonly admission: HelloAdmission;
  readonly waiting: Waiting[];
  /** CPU of earlier steps that was too little for one more. */
  savedMs: number;
  /** How many of `waiting` have their Welcome. */
  welcomed: number;
  /** Since when the present batch is worked on, and how many of it are done. */
  batchFromMs: number;
  batchDone: number;
  /** Whether the present batch was full when it began. */
  isTelling: boolean;
}

class Return {
  readonly #plan: ReturnPlan;
  readonly #desks: readonly Desk[];
  /** Who comes in each step, each as the number of times that it has failed. */
  readonly #coming = new Map<number, number[]>();
  #held = 0;
  #attempts = 0;
  #longestWaitMs = 0;
  /** Connections that wait to be answered, and how many of them have been or gave up. */
  readonly #connecting: Waiting[] = [];
  #accepted = 0;

  constructor(plan: ReturnPlan) {
    this.#plan = plan;
    this.#desks = Array.from({ length: plan.replicas }, () => ({
      admission: new HelloAdmission(plan.hellosPerSecond, 0),
      ...{ waiting: [], savedMs: 0, welcomed: 0, batchFromMs: 0, batchDone: 0, isTelling: false },
    }));
  }

  run(): ReturnOutcome {
    const { agents, random } = this.#plan;
    for (let agent = 0; agent < agents; agent += 1) this.#comeAt(random() * FIRST_WITHIN_MS, 0);
    let nowMs = 0;
    while (this.#held < agents && nowMs < LONGEST_MS) {
      this.#step(nowMs);
      nowMs += STEP_MS;
    }
    return {
      allInMs: this.#held < agents ? null : nowMs,
      attemptsEach: this.#attempts / agents,
      longestWaitMs: this.#longestWaitMs,
    };
  }

  #comeAt(atMs: number, failures: number): void {
    const step = Math.ceil(atMs / STEP_MS);
    const others = this.#coming.get(step);
    if (others === undefined) this.#coming.set(step, [failures]);
    else others.push(failures);
  }

  #step(nowMs: number): void {
    const { cores, heartbeatMs, intervalMs } = this.#plan;
    for (const failures of this.#coming.get(nowMs / STEP_MS) ?? []) this.#connecting.push({ fromMs: nowMs, failures });
    this.#coming.delete(nowMs / STEP_MS);
    const beats = (this.#held * STEP_MS) / intervalMs;
    const cpuMs = Math.max(0, cores * STEP_MS - beats * heartbeatMs);
    const usedMs = this.#accept(nowMs, cpuMs);
    const busy = this.#desks.filter((desk) => desk.waiting.length > desk.welcomed);
    for (const desk of busy) this.#takeIn(desk, nowMs, (cpuMs - usedMs) / busy.length);
  }

  /** Answer connections with half of the CPU at most, and have those come again that gave up. The CPU that it took. */
  #accept(nowMs: number, cpuMs: number): number {
    const { sendAwayMs } = this.#plan;
    let usedMs = 0;
    for (;;) {
      const connection = this.#connecting[this.#accepted];
      if (connection === undefined) return usedMs;
      const { fromMs, failures } = connection;
      if (nowMs - fromMs > PATIENCE_MS) this.#comeAgain(nowMs, 0, failures);
      else if (usedMs + sendAwayMs > cpuMs / 2) return usedMs;
      else if (!this.#greet(nowMs, failures)) usedMs += sendAwayMs;
      this.#accepted += 1;
      this.#attempts += 1;
    }
  }

  /** A Hello has come. False when its agent is sent away. */
  #greet(nowMs: number, failures: number): boolean {
    const { replicas, helloQueue, random } = this.#plan;
    const desk = this.#desks[this.#accepted % replicas];
    if (desk === undefined) throw new RangeError("a fleet needs replicas");
    const verdict = desk.admission.ask(nowMs);
    if (verdict.ok && desk.waiting.length - desk.welcomed < helloQueue) {
      desk.waiting.push({ fromMs: nowMs, failures });
      return true;
    }
    const toldMs = verdict.ok ? desk.admission.turnAway(nowMs) : verdict.retryAfterMs;
    this.#comeAgain(nowMs, toldMs + random() * SPREAD_MS, failures);
    return false;
  }

  /** Those at the head of the queue that have left meanwhile cost next to nothing, and come again. */
  #forgetGone(desk: Desk, nowMs: number): void {
    for (;;) {
      const first = desk.waiting[desk.welcomed];
      if (first === undefined || nowMs - first.fromMs < WELCOME_PATIENCE_MS) return;
      desk.welcomed += 1;
      this.#comeAgain(nowMs, 0, first.failures);
    }
  }

  #comeAgain(nowMs: number, afterMs: number, failures: number): void {
    const ownMs = fullJitter({ attempt: failures, ...BACKOFF, random01: this.#plan.random() });
    this.#comeAt(nowMs + afterMs + ownMs + STEP_MS, failures + 1);
  }

  /** Welcome as many as the CPU of a step allows, in batches. */
  #takeIn(desk: Desk, nowMs: number, cpuMs: number): void {
    const { takeInMs } = this.#plan;
    this.#forgetGone(desk, nowMs);
    const able = Math.floor((cpuMs + desk.savedMs) / takeInMs);
    const most = Math.min(able, desk.waiting.length - desk.welcomed);
    desk.savedMs = able === 0 ? desk.savedMs + cpuMs : 0;
    for (let done = 1; done <= most; done += 1) {
      // As far into the step as its part of the CPU.
      const atMs = nowMs + (STEP_MS * done) / able;
      if (desk.batchDone === 0) {
        desk.batchFromMs = atMs;
        desk.isTelling = desk.waiting.length - desk.welcomed >= BATCH;
      }
      this.#longestWaitMs = Math.max(this.#longestWaitMs, atMs - (desk.waiting[desk.welcomed]?.fromMs ?? atMs));
      desk.welcomed += 1;
      desk.batchDone += 1;
      this.#held += 1;
      if (desk.batchDone < BATCH && desk.welcomed < desk.waiting.length) continue;
      if (desk.isTelling && desk.batchDone === BATCH) desk.admission.tookIn(BATCH, atMs - desk.batchFromMs);
      desk.batchDone = 0;
    }
  }
}
