import type { Clock, Logger, Task } from "@rollcall/process";
import type { CallStore } from "../database/store.ts";
import { noteAccessTokenUses } from "./access-tokens.ts";

/** What is needed to note uses. */
export interface AccessTokenUsesOptions {
  readonly store: Pick<CallStore, "lane" | "db">;
  readonly clock: Clock;
  readonly log: Logger;
  /** How often uses are written; 1 minute. */
  readonly everyMs?: number;
}

/** Tokens remembered at most between two writes: what is beyond is not worth memory. */
const MOST_TOKENS = 10_000;
const DEFAULT_EVERY_MS = 60_000;

/**
 * When access tokens were last used. A use costs one entry in memory; all of them are written in one statement about
 * once a minute. Best effort: a process that is killed takes its last minute with it.
 */
export class AccessTokenUses implements Task {
  readonly name = "note-token-uses";
  readonly #options: AccessTokenUsesOptions;
  readonly #usedAtMs = new Map<string, number>();

  constructor(options: AccessTokenUsesOptions) {
    this.#options = options;
  }

  /** A token was used just now. */
  note(id: string): void {
    if (this.#usedAtMs.size >= MOST_TOKENS && !this.#usedAtMs.has(id)) return;
    this.#usedAtMs.set(id, this.#options.clock.nowMs());
  }

  /** Write what is not written yet. What cannot be written stays for the next time. */
  async write(): Promise<void> {
    const { store, clock } = this.#options;
    const uses = [...this.#usedAtMs];
    const nowMs = clock.nowMs();
    await noteAccessTokenUses(store.db, new Map(uses.map(([id, atMs]) => [id, nowMs - atMs])));
    for (const [id, atMs] of uses) if (this.#usedAtMs.get(id) === atMs) this.#usedAtMs.delete(id);
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { clock, log, everyMs = DEFAULT_EVERY_MS } = this.#options;
    // Not a Loop: it writes again when the signal aborts.
    while (!signal.aborted) {
      // It rejects only when the signal aborts, which is when the rest is written.
      await clock.sleep(everyMs, signal).catch(() => {});
      try {
        await this.write();
        succeeded();
      } catch (err) {
        log.debug({ err }, "uses of access tokens not written");
      }
    }
  }
}
