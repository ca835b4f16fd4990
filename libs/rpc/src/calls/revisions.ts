import { createContextKey } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import type { CallContext } from "./call-context.ts";
import { beforeAbort } from "./call-end.ts";

/** The request header with the highest revision of the log that the caller has seen. */
export const MIN_REVISION_HEADER = "rollcall-min-revision";
/** The response header with a revision of the log. The response includes everything up to that revision. */
export const REVISION_HEADER = "rollcall-revision";

/** The revision that the response includes, stored by the handler; 0 if unknown. */
export const revisionKey = createContextKey<bigint>(0n, { description: "revision of the response" });

/** Send a revision with the response of this call. If several are noted, the highest is sent. */
export function noteRevision({ values }: CallContext, revision: bigint): void {
  if (revision > values.get(revisionKey)) values.set(revisionKey, revision);
}

/** Reports how far the log goes, and how far this process has read it. */
export interface LogReader {
  /** All events up to this revision have been read. */
  readonly position: bigint;
  /**
   * Get a revision that the log has reached: at least `wanted` if the log goes that far. Rejects with the store's
   * error.
   */
  end(wanted: bigint): Promise<bigint>;
  /** Record that the log has reached this revision. */
  noteEnd(revision: bigint): void;
  /**
   * Resolves once all events up to a revision have been read. Rejects with the signal's reason or the store's error.
   */
  caughtUpTo(revision: bigint, signal: AbortSignal): Promise<void>;
}

/** How long a call waits for this process to read the log, in milliseconds. */
export const READ_WITHIN_MS = 5_000;
const RETRY_AFTER_MS = 1_000;

/** Options of a wait for a revision. */
export interface LogWait {
  readonly revision: bigint;
  readonly reader: Pick<LogReader, "position" | "caughtUpTo">;
  readonly signal: AbortSignal;
  /** How long to wait, in milliseconds. Default READ_WITHIN_MS. */
  readonly withinMs?: number;
}

/** Wait until this process has read the log up to a revision. Throws SERVICE_BEHIND if that takes too long. */
export async function readInTime({ revision, reader, signal, withinMs = READ_WITHIN_MS }: LogWait): Promise<void> {
  const timeout = AbortSignal.timeout(withinMs);
  try {
    const until = AbortSignal.any([signal, timeout]);
    await beforeAbort(reader.caughtUpTo(revision, until), until);
  } catch (cause) {
    if (signal.aborted || !timeout.aborted) throw cause;
    const { position } = reader;
    const metadata = { revision: String(revision), position: String(position) };
    const text = `this service has read revision ${position} of the log, but the call requires ${revision}: try again`;
    throw refuse("SERVICE_BEHIND", text, { metadata, retryAfterMs: RETRY_AFTER_MS });
  }
}
