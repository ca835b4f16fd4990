import { setTimeout as delay } from "node:timers/promises";
import { withClient } from "../../servers/database.ts";
import type { PlaneClient } from "./plane-client.ts";

const PAUSE_MS = 200;
/** Codes that a caller can get while the database is slow. After each of them, it is safe to repeat the call. */
const HONEST_CODES = new Set(["unavailable", "resource_exhausted", "deadline_exceeded"]);

/** A decision that was requested. */
interface Decision {
  readonly reason: string;
  readonly isAnswered: boolean;
}

/** Makes an operator's decisions, one after the other, and records their outcomes. */
export class Decisions {
  readonly #client: PlaneClient;
  readonly #nodes: readonly string[];
  readonly #asked: Decision[] = [];
  readonly #complaints: string[] = [];
  readonly #ending = new AbortController();
  #deciding: Promise<void> = Promise.resolve();

  /** @param nodes the nodes to cordon and uncordon, one after the other. */
  constructor(client: PlaneClient, nodes: readonly string[]) {
    this.#client = client;
    this.#nodes = nodes;
  }

  get asked(): number {
    return this.#asked.length;
  }

  get answered(): number {
    return this.#asked.filter(({ isAnswered }) => isAnswered).length;
  }

  start(): void {
    this.#deciding = this.#decide();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#deciding;
  }

  /** List answered decisions that had no effect, and decisions that took effect more than once. */
  async complaints(url: string, startRevision: string): Promise<readonly string[]> {
    const { rows } = await withClient(url, (client) =>
      client.query<{ message: string; count: number }>(
        `select message, count(*)::integer as count from events
         where type = 'node.scheduling.changed' and revision > $1 group by message`,
        [startRevision],
      ),
    );
    const complaints = [...this.#complaints];
    const counts = new Map(rows.map(({ message, count }) => [message, count]));
    for (const { reason, isAnswered } of this.#asked) {
      const count = counts.get(reason) ?? 0;
      if (isAnswered && count === 0) complaints.push(`${reason} was answered, and lost`);
      if (count > 1) complaints.push(`${reason} took effect ${count} times`);
    }
    return complaints;
  }

  /** Cordon and uncordon nodes without a pause, each time with a new reason. */
  async #decide(): Promise<void> {
    for (let number = 0; !this.#ending.signal.aborted; number += 1) {
      const node = this.#nodes[number % this.#nodes.length];
      for (const verb of ["CordonNode", "UncordonNode"]) {
        const reason = `decision ${number} ${verb}`;
        const outcome = await this.#client.call(`rollcall.admin.v1.AdminService/${verb}`, { node, reason });
        this.#asked.push({ reason, isAnswered: outcome === "answered" });
        const isHonest = HONEST_CODES.has(outcome) || outcome === "answered" || outcome === "failed_precondition";
        if (!isHonest) this.#complaints.push(`${reason} returned ${outcome}`);
      }
      await delay(PAUSE_MS);
    }
  }
}
