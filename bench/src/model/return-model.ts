import { HelloAdmission } from "@rollcall/domain";
import { fullJitter } from "@rollcall/process";

/** A fleet that has lost all replicas at the same moment, and the machine to which it reconnects. */
export interface ReturnPlan {
  readonly agents: number;
  readonly replicas: number;
  /** The cores for replicas and Postgres together. */
  readonly cores: number;
  /** The CPU that replicas and Postgres use to welcome one agent, including its connection. */
  readonly admitMs: number;
  /** The CPU that a connection costs if its agent is sent away. */
  readonly sendAwayMs: number;
  /** The CPU that a heartbeat of a welcomed agent costs. Heartbeats have priority over everything else. */
  readonly heartbeatMs: number;
  readonly intervalMs: number;
  readonly hellosPerSecond: number;
  readonly helloQueue: number;
  /** Returns random numbers in [0, 1). */
  readonly random: () => number;
}

/** The result of a simulated return. */
export interface ReturnOutcome {
  /**
   * The time from the moment at which the replicas serve until all agents are connected; null if they never all are.
   */
  readonly allInMs: number | null;
  /** The average number of connections per agent. It is one if no agent is sent away. */
  readonly attemptsEach: number;
  /** The longest time that an agent waited for its Welcome after its Hello was accepted. */
  readonly longestWaitMs: number;
}

const STEP_MS = 50;
const LONGEST_MS = 3_600_000;
const BATCH = 200;
/** How long an agent waits for a response to its connection. */
const PATIENCE_MS = 5_000;
/** How long an agent waits for a Welcome. */
const WELCOME_PATIENCE_MS = 20_000;
/** The time over which agents spread after they found no replica for some seconds. */
const FIRST_WITHIN_MS = 4_000;
/** The time over which the server spreads agents to which it gives the same delay. */
const SPREAD_MS = 1_000;
/** The backoff that each agent adds to the delay from the server. */
const BACKOFF = { baseMs: 1_000, maxMs: 20_000 };

/**
 * Simulates the return of a fleet in steps. Admission uses the shipped code and its times; the CPU costs are inputs.
 * Replicas share the cores evenly. A replica that has used up its CPU responds in a later step.
 */
export function simulateReturn(plan: ReturnPlan): ReturnOutcome {
  return new Return(plan).run();
}

/** A waiting agent: when it began to wait, and the number of times that it failed. */
interface Waiting {
  readonly fromMs: number;
  readonly failures: number;
}

/** One replica, and the agents that wait for its Welcome. */
interface Queue {
  readonly admission: HelloAdmission;
  readonly waiting: Waiting[];
  /** The CPU left over from earlier steps, because it was too little for another agent. */
  savedMs: number;
  /** The number of agents in `waiting` that have their Welcome or have left. */
  welcomed: number;
  /** When work on the current batch started, and how many of the batch's agents are done. */
  batchFromMs: number;
  batchDone: number;
  /** Whether the current batch was full when it started. */
  wasFull: boolean;
}

class Return {
  readonly #plan: ReturnPlan;
  readonly #queues: readonly Queue[];
  /** The agents that connect in each step, each represented by its number of failures. */
  readonly #coming = new Map<number, number[]>();
  #held = 0;
  #attempts = 0;
  #longestWaitMs = 0;
  /** Connections that wait for a response, and how many of them got a response or gave up. */
  readonly #connecting: Waiting[] = [];
  #accepted = 0;

  constructor(plan: ReturnPlan) {
    this.#plan = plan;
    this.#queues = Array.from({ length: plan.replicas }, () => ({
      admission: new HelloAdmission(plan.hellosPerSecond, 0),
      ...{ waiting: [], savedMs: 0, welcomed: 0, batchFromMs: 0, batchDone: 0, wasFull: false },
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
    const busy = this.#queues.filter((queue) => queue.waiting.length > queue.welcomed);
    for (const queue of busy) this.#takeIn(queue, nowMs, (cpuMs - usedMs) / busy.length);
  }

  /**
   * Respond to connections with at most half of the CPU, and reschedule the agents that gave up. Returns the CPU used.
   */
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

  /** Handle a Hello. Returns false if the agent is sent away. */
  #greet(nowMs: number, failures: number): boolean {
    const { replicas, helloQueue, random } = this.#plan;
    const queue = this.#queues[this.#accepted % replicas];
    if (queue === undefined) throw new RangeError("a fleet needs replicas");
    const result = queue.admission.ask(nowMs);
    if (result.ok && queue.waiting.length - queue.welcomed < helloQueue) {
      queue.waiting.push({ fromMs: nowMs, failures });
      return true;
    }
    const toldMs = result.ok ? queue.admission.turnAway(nowMs) : result.retryAfterMs;
    this.#comeAgain(nowMs, toldMs + random() * SPREAD_MS, failures);
    return false;
  }

  /** Skip agents at the head of the queue that have left. This costs no CPU. They reconnect later. */
  #forgetGone(queue: Queue, nowMs: number): void {
    for (;;) {
      const first = queue.waiting[queue.welcomed];
      if (first === undefined || nowMs - first.fromMs < WELCOME_PATIENCE_MS) return;
      queue.welcomed += 1;
      this.#comeAgain(nowMs, 0, first.failures);
    }
  }

  #comeAgain(nowMs: number, afterMs: number, failures: number): void {
    const ownMs = fullJitter({ attempt: failures, ...BACKOFF, random01: this.#plan.random() });
    this.#comeAt(nowMs + afterMs + ownMs + STEP_MS, failures + 1);
  }

  /** Welcome as many agents as the CPU of a step allows, in batches. */
  #takeIn(queue: Queue, nowMs: number, cpuMs: number): void {
    const { admitMs } = this.#plan;
    this.#forgetGone(queue, nowMs);
    const able = Math.floor((cpuMs + queue.savedMs) / admitMs);
    const most = Math.min(able, queue.waiting.length - queue.welcomed);
    queue.savedMs = able === 0 ? queue.savedMs + cpuMs : 0;
    for (let done = 1; done <= most; done += 1) {
      // The time within the step, in proportion to the CPU used.
      const atMs = nowMs + (STEP_MS * done) / able;
      if (queue.batchDone === 0) {
        queue.batchFromMs = atMs;
        queue.wasFull = queue.waiting.length - queue.welcomed >= BATCH;
      }
      this.#longestWaitMs = Math.max(this.#longestWaitMs, atMs - (queue.waiting[queue.welcomed]?.fromMs ?? atMs));
      queue.welcomed += 1;
      queue.batchDone += 1;
      this.#held += 1;
      if (queue.batchDone < BATCH && queue.welcomed < queue.waiting.length) continue;
      if (queue.wasFull && queue.batchDone === BATCH) queue.admission.tookIn(BATCH, atMs - queue.batchFromMs);
      queue.batchDone = 0;
    }
  }
}
