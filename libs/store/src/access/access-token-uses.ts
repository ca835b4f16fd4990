import type { Clock, Logger, Task } from "@rollcall/process";
import type { CallStore } from "../database/store.ts";
import { noteAccessTokenUses } from "./access-tokens.ts";

export interface AccessTokenUsesOptions {
  readonly store: Pick<CallStore, "lane" | "db">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Interval between two writes of uses to the store. Default 1 minute. */
  readonly everyMs?: number;
}

/**
 * Maximum number of tokens remembered between two writes. Uses of further tokens are dropped to bound memory.
 */
const MOST_TOKENS = 10_000;
const DEFAULT_EVERY_MS = 60_000;

/**
 * Records when access tokens were last used. It keeps one entry in memory for each used token, and writes all
 * entries with one statement about once a minute. A process that is killed loses the uses of its last minute.
 */
export class AccessTokenUses implements Task {
  readonly name = "note-token-uses";
  readonly #options: AccessTokenUsesOptions;
  readonly #usedAtMs = new Map<string, number>();

  constructor(options: AccessTokenUsesOptions) {
    this.#options = options;
  }

  /** Record that a token was used just now. */
  note(id: string): void {
    if (this.#usedAtMs.size >= MOST_TOKENS && !this.#usedAtMs.has(id)) return;
    this.#usedAtMs.set(id, this.#options.clock.nowMs());
  }

  /** Write the pending uses. If that fails, they stay pending for the next write. */
  async write(): Promise<void> {
    const { store, clock } = this.#options;
    const uses = [...this.#usedAtMs];
    const nowMs = clock.nowMs();
    await noteAccessTokenUses(store.db, new Map(uses.map(([id, atMs]) => [id, nowMs - atMs])));
    for (const [id, atMs] of uses) if (this.#usedAtMs.get(id) === atMs) this.#usedAtMs.delete(id);
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { clock, log, everyMs = DEFAULT_EVERY_MS } = this.#options;
    // Do not use a Loop, because the pending uses must be written once more when the signal aborts.
    while (!signal.aborted) {
      // Ignore the rejection: the sleep rejects only when the signal aborts, and the pending uses are then
      // written a last time.
      await clock.sleep(everyMs, signal).catch(() => {});
      try {
        await this.write();
        succeeded();
      } catch (err) {
        log.debug({ err }, "could not write the uses of access tokens");
      }
    }
  }
}
