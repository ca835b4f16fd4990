import { type Clock, type Logger, systemClock } from "@rollcall/process";
import { sql } from "kysely";
import { currentRevision } from "../log/events.ts";
import { SESSION_CHECK } from "./pool.ts";
import type { ReservedStore } from "./store.ts";
import { isReadOnly } from "./store-error.ts";

/** One answer of the check: whether it succeeded, and what was found. */
export interface RecordCheckResult {
  readonly ok: boolean;
  /** Whether the database is slow. */
  readonly degraded?: boolean;
  readonly message: string;
}

/** Slower than this is worth a word. */
const SLOW_MS = 1_000;
/** Probes give up after 2 s, and then name nothing. */
const WAIT_MS = 1_500;
/** A database that has not answered for so long is taken for one that is away. */
const SILENT_MS = 10_000;

/**
 * Create the check of readiness that says whether the database can be reached, accepts changes, and is slow. It asks
 * over a reserved connection, so that a process whose callers wait for connections is not taken for one without a
 * database; and once at a time, however many probes ask. It answers within 1.5 s, whatever the database does.
 */
export function createRecordCheck(
  store: ReservedStore,
  log: Logger,
  clock: Clock = systemClock,
): () => Promise<RecordCheckResult> {
  let asking: { readonly sinceMs: number; readonly answer: Promise<RecordCheckResult> } | null = null;
  let last: RecordCheckResult | null = null;
  const ask = async (sinceMs: number): Promise<RecordCheckResult> => {
    try {
      const [revision] = await Promise.all([currentRevision(store.db), sql.raw(SESSION_CHECK).execute(store.db)]);
      const tookMs = clock.nowMs() - sinceMs;
      if (tookMs < SLOW_MS) return { ok: true, message: `at revision ${revision}` };
      return { ok: true, degraded: true, message: `the database is slow: it answered in ${secondsOf(tookMs)}` };
    } catch (err) {
      log.debug({ err }, "record cannot be used");
      return {
        ok: false,
        message: isReadOnly(err) ? "the record accepts no writes" : "the record cannot be reached",
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
