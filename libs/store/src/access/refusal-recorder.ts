import { type BucketLimits, BucketTable } from "@rollcall/domain";
import { reasonOf } from "@rollcall/errors";
import { Batcher, type Clock, counter, type Logger, type MetricsRegistry } from "@rollcall/process";
import type { NewAuditEntry } from "../database/audit.ts";
import type { CallStore } from "../database/store.ts";

export interface RefusalRecorderOptions {
  readonly store: Pick<CallStore, "lane" | "change">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Rate limit of recorded refusals per caller. Default 10 a second, with bursts of up to 100. */
  readonly perActor?: BucketLimits;
}

/** Writes refusals to the audit log in batches, separately from the refused calls. */
export interface RefusalRecorder {
  /** Record a refused call. It neither throws nor blocks. */
  record(refusal: NewAuditEntry): void;
  /** Write the pending refusals. Close the servers first, so that no refusals follow. */
  close(): Promise<void>;
}

const PER_ACTOR: BucketLimits = { perSecond: 10, burst: 100 };
const MAX_ACTORS = 10_000;
const MAX_ITEMS = 200;
// How long a refusal can wait for others before it is written, in milliseconds. No caller waits for these rows, so
// they are batched: a flood of refusals costs a few writes a second.
const MAX_WAIT_MS = 100;
const MAX_QUEUED = 2_000;

/**
 * Create a process's refusal recorder. It drops and counts a refusal if the caller was refused too often, the queue is
 * full or the store is unavailable. The log line of a dropped refusal remains.
 */
export function createRefusalRecorder(options: RefusalRecorderOptions): RefusalRecorder {
  const { store, clock, log, metrics } = options;
  const left = counter(metrics, {
    name: "rollcall_audit_refusals_left_out_total",
    help: "Refusals not written to the audit log, by cause.",
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
        // Do not log a refusal that a full queue drops: a flood of refusals would also flood the log.
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
