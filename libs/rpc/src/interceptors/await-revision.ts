import type { Interceptor } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { callerKey } from "../calls/call-context.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import { type LogReader, MIN_REVISION_HEADER, REVISION_HEADER, readInTime, revisionKey } from "../calls/revisions.ts";

/** Revisions are signed 64-bit numbers in the store. */
const LARGEST = 2n ** 63n - 1n;
const DECIMAL = /^\d{1,19}$/;

/**
 * Answer no call from what was true before the revision that its caller has seen, and send the revision of each answer
 * that knows one. Only methods whose policy row says readsLog wait: all others read the database as they are called, so
 * that it is enough to know that the log goes that far. Throws INVALID_MIN_REVISION, MIN_REVISION_AHEAD, and
 * SERVICE_BEHIND. Callers without a token have seen nothing: they wait for nothing, and cost no read.
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

/** Refuse a revision that the log does not have: waiting for it would only end with the time limit. */
async function checkEnd(log: LogReader, revision: bigint, readsLog: boolean): Promise<void> {
  let end: bigint;
  try {
    end = await log.end(revision);
  } catch (error) {
    // Some methods work without the database. The others report its absence themselves.
    if (!readsLog) return;
    throw error;
  }
  if (revision <= end) return;
  const message = `the revision of the header ${MIN_REVISION_HEADER} is ${revision}, but the log ends at ${end}`;
  throw refuse("MIN_REVISION_AHEAD", message, { metadata: { revision: String(revision), head: String(end) } });
}
