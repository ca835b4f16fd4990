import { type BucketLimits, BucketTable } from "@rollcall/domain";
import { reasonOf } from "@rollcall/errors";
import { Batcher, type Clock, counter, type Logger, type MetricsRegistry } from "@rollcall/process";
import type { CallStore } from "../database/store.ts";
import type { NewAuditEntry } from "./audit.ts";

export interface RefusalRecorderOptions {
  readonly store: Pick<CallStore, "lane" | "change">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** How many refusals of one caller are recorded. Default 10 a second, 100 at once. */
  readonly perActor?: BucketLimits;
}

/** Writes refusals to the audit log, in batches of its own. */
export interface RefusalRecorder {
  /** Take note of a refused call. It neither throws nor makes its caller wait. */
  record(refusal: NewAuditEntry): void;
  /** Write those that wait. Close the servers first. */
  close(): Promise<void>;
}

const PER_ACTOR: BucketLimits = { perSecond: 10, burst: 100 };
const MAX_ACTORS = 10_000;
const MAX_ITEMS = 200;
// No caller waits for these rows, so they are gathered: a storm of refusals is some writes a second.
const MAX_WAIT_MS = 100;
const MAX_QUEUED = 2_000;

/**
 * Create the recorder of one process. What it does not write (a caller who is refused too often, a full queue, a record
 * that is away) is counted; its line in the log stands.
 */
export function createRefusalRecorder(options: RefusalRecorderOptions): RefusalRecorder {
  const { store, clock, log, metrics } = options;
  const left = counter(metrics, {
    name: "rollcall_audit_refusals_left_out_total",
    help: "Refusals that were not written to the audit log, by cause.",
    labelNames: ["cause"],
  });
  const actors = new BucketTable(options.perActor ?? PER_ACTOR, MAX_ACTORS);
  const batcher = new Batcher<NewAuditEntry, null>({
    run: (audit) => writeAll(store, audit),
    maxItems: MAX_ITEMS,
    maxWaitMs: MAX_WAIT_MS,
    maxQueued: MAX_QUEUED,
    clock,
  });
  return {
    record: (refusal) => {
      if (!actors.take(refusal.actor, clock.nowMs())) {
        left.inc({ cause: "caller" });
        return;
      }
      batcher.submit(refusal).catch((err: unknown) => {
        const isFull = reasonOf(err) === "OVERLOADED";
        left.inc({ cause: isFull ? "queue" : "record" });
        // Of a queue that is full there would be a line for each that does not fit.
        if (!isFull) log.warn({ err, actor: refusal.actor }, "refusal not written to the audit log");
      });
    },
    close: () => batcher.close(),
  };
}

async function writeAll(
  store: Pick<CallStore, "lane" | "change">,
  audit: readonly NewAuditEntry[],
): Promise<readonly null[]> {
  await store.change(async () => ({ result: null, events: [], audit }));
  return audit.map(() => null);
}
