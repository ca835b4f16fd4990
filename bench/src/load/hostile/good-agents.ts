import { setTimeout as delay } from "node:timers/promises";
import { percentile } from "../../report.ts";
import { BeatFrames } from "../beat-frames.ts";
import { agentIdentity, LiveAgent } from "../live-agent.ts";
import type { ServerAddress } from "../open-socket.ts";

/** The results of the well-behaved agents since the last reading. */
export interface AgentsFared {
  /** The number of streams that ended. */
  readonly lost: number;
  readonly acks: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
}

const BEAT_EVERY_MS = 200;

/**
 * Well-behaved agents. Each holds one stream, beats five times a second, and measures the time to every
 * acknowledgement.
 */
export class GoodAgents {
  readonly #agents: readonly LiveAgent[];
  readonly #sentAtMs = new Map<LiveAgent, number>();
  readonly #timers: readonly NodeJS.Timeout[];
  #delaysMs: number[] = [];
  #lost = 0;

  private constructor(agents: readonly LiveAgent[]) {
    this.#agents = agents;
    this.#timers = agents.map((agent, index) => {
      const offsetMs = (index * BEAT_EVERY_MS) / agents.length;
      return setInterval(() => this.#beat(agent), BEAT_EVERY_MS + offsetMs / BEAT_EVERY_MS);
    });
  }

  /** Start the agents of the first `count` seeded nodes. Resolves when all of them are connected. */
  static async start(count: number, server: ServerAddress): Promise<GoodAgents> {
    const frames = new BeatFrames();
    let all: GoodAgents | null = null;
    const agents: LiveAgent[] = [];
    // Connect the agents one after the other, because the server may close a connection that waits too
    // long before its first call.
    for (let index = 0; index < count; index += 1) {
      const agent = new LiveAgent(agentIdentity(index), server, frames, {
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

  /**
   * Return the number of Beats acknowledged since the last call, and the time that each acknowledgement
   * took.
   */
  take(): AgentsFared {
    const nowMs = performance.now();
    // Also count Beats that still wait, because otherwise a stopped server would look fast.
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

  /** Wait until most agents have their Acks, so that the next measurement starts clean. */
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

  #beat(agent: LiveAgent): void {
    if (agent.waits) return;
    this.#sentAtMs.set(agent, performance.now());
    agent.beat();
  }

  onAck(agent: LiveAgent): void {
    const sentAtMs = this.#sentAtMs.get(agent);
    if (sentAtMs === undefined) return;
    this.#sentAtMs.delete(agent);
    this.#delaysMs.push(performance.now() - sentAtMs);
  }

  onEnd(): void {
    this.#lost += 1;
  }
}
