import { type Clock, type Logger, systemClock } from "@rollcall/process";
import { sql } from "kysely";
import { SESSION_CHECK } from "../database/pool.ts";
import type { ReservedStore } from "../database/store.ts";
import { isReadOnly } from "../database/store-error.ts";
import { currentRevision } from "../log/events.ts";

/** The result of a check: whether it succeeded, and its findings. */
export interface StoreCheckResult {
  readonly ok: boolean;
  /** Whether the database is slow. */
  readonly degraded?: boolean;
  readonly message: string;
}

/** The response time in milliseconds above which the check reports the database as slow. */
const SLOW_MS = 1_000;
/**
 * How long the check waits for an answer. This is shorter than the timeout of probes, 2 s, so that the check can
 * report the cause.
 */
const WAIT_MS = 1_500;
/** How long a database can fail to answer before it counts as unavailable. */
const SILENT_MS = 10_000;

/**
 * Create the readiness check that reports whether the database is reachable, accepts writes, and is slow. It uses a
 * reserved connection, so that a process whose callers wait for connections does not look like a process without a
 * database. Only one query runs at a time, however many probes arrive. The check answers within 1.5 s, even if the
 * database does not.
 */
export function createStoreCheck(
  store: ReservedStore,
  log: Logger,
  clock: Clock = systemClock,
): () => Promise<StoreCheckResult> {
  let asking: { readonly sinceMs: number; readonly answer: Promise<StoreCheckResult> } | null = null;
  let last: StoreCheckResult | null = null;
  const ask = async (sinceMs: number): Promise<StoreCheckResult> => {
    try {
      const [revision] = await Promise.all([currentRevision(store.db), sql.raw(SESSION_CHECK).execute(store.db)]);
      const tookMs = clock.nowMs() - sinceMs;
      if (tookMs < SLOW_MS) return { ok: true, message: `at revision ${revision}` };
      return { ok: true, degraded: true, message: `the database is slow: it answered in ${secondsOf(tookMs)}` };
    } catch (err) {
      log.debug({ err }, "store is unavailable");
      return {
        ok: false,
        message: isReadOnly(err) ? "the database accepts no writes" : "the database cannot be reached",
      };
    }
  };
  const begin = () => {
    const sinceMs = clock.nowMs();
    const answer = ask(sinceMs).then((result) => {
      last = result;
      asking = null;
      return result;
    });
    return { sinceMs, answer };
  };
  return async () => {
    asking ??= begin();
    const { sinceMs, answer } = asking;
    const answered = new AbortController();
    const late = clock.sleep(WAIT_MS, answered.signal).then(
      () => null,
      () => null,
    );
    const result = await Promise.race([answer, late]);
    answered.abort();
    if (result !== null) return result;
    const silentMs = clock.nowMs() - sinceMs;
    const message = `the database is slow: it has not answered for ${secondsOf(silentMs)}`;
    return silentMs < SILENT_MS && last?.ok === true ? { ok: true, degraded: true, message } : { ok: false, message };
  };
}

function secondsOf(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
