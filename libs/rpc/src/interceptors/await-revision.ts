import type { Interceptor } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { callerKey } from "../calls/call-context.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import { type LogReader, MIN_REVISION_HEADER, REVISION_HEADER, readInTime, revisionKey } from "../calls/revisions.ts";

/** The largest revision: the store keeps revisions as signed 64-bit numbers. */
const LARGEST = 2n ** 63n - 1n;
const DECIMAL = /^\d{1,19}$/;

/**
 * Never answer a call from a state that is older than the revision that its caller has seen. If a response has a
 * revision, send it to the caller.
 *
 * Only methods with `readsLog` in their policy row wait. All others query the database, so it is enough that the log
 * has reached the revision. Callers without a token have not seen a revision, so their calls cause neither a wait nor
 * a query.
 *
 * Throws INVALID_MIN_REVISION, MIN_REVISION_AHEAD, and SERVICE_BEHIND.
 */
export function awaitRevision(policies: PolicyTable, log: LogReader, withinMs?: number): Interceptor {
  return (next) => async (request) => {
    const text = request.header.get(MIN_REVISION_HEADER);
    if (text !== null && request.contextValues.get(callerKey).kind !== "anonymous") {
      const revision = parseRevision(text);
      const readsLog = policies[methodName(request.method)]?.readsLog === true;
      await checkEnd(log, revision, readsLog);
      const bound = withinMs === undefined ? {} : { withinMs };
      if (readsLog) await readInTime({ revision, reader: log, signal: request.signal, ...bound });
    }
    const answer = await next(request);
    const revision = request.contextValues.get(revisionKey);
    if (revision > 0n) {
      log.noteEnd(revision);
      answer.header.set(REVISION_HEADER, String(revision));
    }
    return answer;
  };
}

function parseRevision(text: string): bigint {
  const revision = DECIMAL.test(text) ? BigInt(text) : null;
  if (revision !== null && revision <= LARGEST) return revision;
  const message = `the header ${MIN_REVISION_HEADER} must be a decimal number from 0 to ${LARGEST}`;
  throw refuse("INVALID_MIN_REVISION", message, { metadata: { header: MIN_REVISION_HEADER } });
}

/** Refuse a revision that the log has not reached. Waiting for it would only exceed the time limit. */
async function checkEnd(log: LogReader, revision: bigint, readsLog: boolean): Promise<void> {
  let end: bigint;
  try {
    end = await log.end(revision);
  } catch (error) {
    // Ignore the error: some methods work without the database, and all others report an unavailable database
    // themselves.
    if (!readsLog) return;
    throw error;
  }
  if (revision <= end) return;
  const message = `the revision of the header ${MIN_REVISION_HEADER} is ${revision}, but the log ends at ${end}`;
  throw refuse("MIN_REVISION_AHEAD", message, { metadata: { revision: String(revision), head: String(end) } });
}
