import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { beforeAbort } from "../interceptors/call-end.ts";

/** The request header with the highest revision of the log that the caller has seen. */
export const MIN_REVISION_HEADER = "rollcall-min-revision";
/** The response header with the revision that includes what the answer says. */
export const REVISION_HEADER = "rollcall-revision";

/** Where handlers leave the revision that their answer includes; 0 when they do not know one. */
export const revisionKey = createContextKey<bigint>(0n, { description: "the revision of the answer" });

/** Send a revision with the answer of this call. The highest one counts. */
export function noteRevision({ values }: Pick<HandlerContext, "values">, revision: bigint): void {
  if (revision > values.get(revisionKey)) values.set(revisionKey, revision);
}

/** What a process knows about the log. */
export interface LogReader {
  /** Everything up to here has been read. */
  readonly position: bigint;
  /**
   * A revision up to which the log is known to go. It is `wanted` or more if the log goes that far. Rejects with the
   * store's error.
   */
  end(wanted: bigint): Promise<bigint>;
  /** The log goes at least this far. */
  noteEnd(revision: bigint): void;
  /** Resolves once everything up to a revision has been read; rejects with the signal's reason or the store's error. */
  caughtUpTo(revision: bigint, signal: AbortSignal): Promise<void>;
}

/** How long a call waits until the log has been read. */
export const READ_WITHIN_MS = 5_000;
const RETRY_AFTER_MS = 1_000;

/** What waits until the log has been read up to a revision. */
export interface LogWait {
  readonly revision: bigint;
  readonly reader: Pick<LogReader, "position" | "caughtUpTo">;
  readonly signal: AbortSignal;
  /** Default READ_WITHIN_MS. */
  readonly withinMs?: number;
}

/** Wait until the log has been read up to a revision. Throws SERVICE_BEHIND when that takes too long. */
export async function readInTime({ revision, reader, signal, withinMs = READ_WITHIN_MS }: LogWait): Promise<void> {
  const timeout = AbortSignal.timeout(withinMs);
  try {
    const until = AbortSignal.any([signal, timeout]);
    await beforeAbort(reader.caughtUpTo(revision, until), until);
  } catch (cause) {
    if (signal.aborted || !timeout.aborted) throw cause;
    const { position } = reader;
    const metadata = { revision: String(revision), position: String(position) };
    const text = `the service has read the log up to revision ${position}, and needs ${revision}: try again`;
    throw refuse("SERVICE_BEHIND", text, { metadata, retryAfterMs: RETRY_AFTER_MS });
  }
}
