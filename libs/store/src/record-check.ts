import type { CheckResult, Logger } from "@rollcall/runtime";
import { currentRevision } from "./events.ts";
import type { ReservedStore } from "./store.ts";

/**
 * Create the check of readiness that says whether the record can be reached. It asks over a reserved connection, so that a process whose callers
 * wait for connections is not taken for one without a record; and once at a time, however many probes ask.
 */
export function createRecordCheck(store: ReservedStore, log: Logger): () => Promise<CheckResult> {
  let asking: Promise<CheckResult> | null = null;
  const ask = async (): Promise<CheckResult> => {
    try {
      return { ok: true, message: `at revision ${await currentRevision(store.db)}` };
    } catch (err) {
      log.debug({ err }, "record cannot be reached");
      return { ok: false, message: "the record cannot be reached" };
    }
  };
  return () => {
    asking ??= ask().finally(() => {
      asking = null;
    });
    return asking;
  };
}
