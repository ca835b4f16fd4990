import { setTimeout as delay } from "node:timers/promises";
import { percentile } from "../../report.ts";
import { BeatFrames } from "../beat-frames.ts";
import { agentIdentity, HeldAgent } from "../held-agent.ts";
import type { ServerAddress } from "../open-socket.ts";

/** How the well-behaved fared since they were asked last. */
export interface AgentsFared {
  /** Streams that ended. */
  readonly lost: number;
  readonly acks: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
}

const BEAT_EVERY_MS = 200;

/** Well-behaved agents: each holds one stream, beats five times a second, and times every acknowledgement. */
export class GoodAgents {
  readonly #agents: readonly HeldAgent[];
  readonly #sentAtMs = new Map<HeldAgent, number>();
  readonly #timers: readonly NodeJS.Timeout[];
  #delaysMs: number[] = [];
  #lost = 0;

  private constructor(agents: readonly HeldAgent[]) {
    this.#agents = agents;
    this.#timers = agents.map((agent, index) => {
      const offsetMs = (index * BEAT_EVERY_MS) / agents.length;
      return setInterval(() => this.#beat(agent), BEAT_EVERY_MS + offsetMs / BEAT_EVERY_MS);
    });
  }

  /** Resolves when all of the seeded nodes' agents are held. */
  static async start(count: number, server: ServerAddress): Promise<GoodAgents> {
    const frames = new BeatFrames();
    let all: GoodAgents | null = null;
    const agents: HeldAgent[] = [];
    // One after the other: a connection that waits for its turn to call is one that the server may end.
    for (let index = 0; index < count; index += 1) {
      const agent = new HeldAgent(agentIdentity(index), server, frames, {
        onAck: (one) => all?.onAck(one),
        onEnd: () => all?.onEnd(),
      });
      agents.push(agent);
      await agent.open();
      await agent.welcome;
    }
    all = new GoodAgents(agents);
    return all;
  }

  /** What was acknowledged, and how soon, since the last call. */
  take(): AgentsFared {
    const nowMs = performance.now();
    // What is still owed counts as well, or a server that stands still would look fast.
    const owed = [...this.#sentAtMs.values()].map((sentAtMs) => nowMs - sentAtMs);
    const acks = this.#delaysMs.length;
    const delays = Float64Array.from([...this.#delaysMs, ...owed]);
    const fared = {
      lost: this.#lost,
      acks,
      p50Ms: percentile(delays, 0.5),
      p99Ms: percentile(delays, 0.99),
      slowestMs: delays.at(-1) ?? 0,
    };
    this.#delaysMs = [];
    this.#lost = 0;
    return fared;
  }

  /** Wait until every agent has its Acks, so that what follows is measured alone. */
  async settled(limitMs: number): Promise<void> {
    const limitAtMs = performance.now() + limitMs;
    while (this.#sentAtMs.size > this.#agents.length / 2 && performance.now() < limitAtMs) {
      await delay(BEAT_EVERY_MS / 4);
    }
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const agent of this.#agents) agent.close();
  }

  #beat(agent: HeldAgent): void {
    if (agent.waits) return;
    this.#sentAtMs.set(agent, performance.now());
    agent.beat();
  }

  onAck(agent: HeldAgent): void {
    const sentAtMs = this.#sentAtMs.get(agent);
    if (sentAtMs === undefined) return;
    this.#sentAtMs.delete(agent);
    this.#delaysMs.push(performance.now() - sentAtMs);
  }

  onEnd(): void {
    this.#lost += 1;
  }
}
