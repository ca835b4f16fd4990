import type { Logger } from "@rollcall/process";
import { sql } from "kysely";
import { currentRevision } from "../log/events.ts";
import { SESSION_CHECK } from "./pool.ts";
import type { ReservedStore } from "./store.ts";
import { isReadOnly } from "./store-error.ts";

/** One answer of the check: whether it succeeded, and what to tell of it. */
export interface RecordCheckResult {
  readonly ok: boolean;
  readonly message: string;
}

/**
 * Create the check of readiness that says whether the record can be reached and takes changes. It asks over a reserved
 * connection, so that a process whose callers wait for connections is not taken for one without a record; and once at a
 * time, however many probes ask.
 */
export function createRecordCheck(store: ReservedStore, log: Logger): () => Promise<RecordCheckResult> {
  let asking: Promise<RecordCheckResult> | null = null;
  const ask = async (): Promise<RecordCheckResult> => {
    try {
      await sql.raw(SESSION_CHECK).execute(store.db);
      return { ok: true, message: `at revision ${await currentRevision(store.db)}` };
    } catch (err) {
      log.debug({ err }, "record cannot be used");
      return {
        ok: false,
        message: isReadOnly(err) ? "the record accepts no writes" : "the record cannot be reached",
      };
    }
  };
  return () => {
    asking ??= ask().finally(() => {
      asking = null;
    });
    return asking;
  };
}
