import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ExecutionSchema,
  GetExecutionResponseSchema,
  type JobService,
  ListExecutionsResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { refuse } from "@rollcall/errors";
import {
  type Db,
  type ExecutionRow,
  executionNotFound,
  findExecutions,
  getExecutions,
  readExecutions,
} from "@rollcall/store";
import { readPage } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import { executionToProto, stateOf, statesFromProto } from "./convert-execution.ts";

const SHOWN = 3;

/** Return one execution. */
export function getExecution({ store }: SchedulerServices): MethodImpl<typeof JobService.method.getExecution> {
  return async ({ execution, allowPrefix }) => {
    const found = await findExecution(store.db, execution, allowPrefix);
    return create(GetExecutionResponseSchema, { execution: executionToProto(found) });
  };
}

const DEFAULT_PAGE_SIZE = 100;
const READ_ROWS = 512;

/** Return a page of executions, newest first. */
export function listExecutions({
  store,
  pageTokens,
}: SchedulerServices): MethodImpl<typeof JobService.method.listExecutions> {
  return async ({ pageSize, pageToken, job, nodeId, states }, context) => {
    const listing = `ListExecutions ${JSON.stringify([job, nodeId, states])}`;
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const below = pageTokens.open(listing, pageToken) as string | null;
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const wanted = statesFromProto(states);
    const filter = { ...(job === "" ? {} : { job }), ...(nodeId === "" ? {} : { nodeId }) };
    const isWanted = (found: ExecutionRow) => wanted.size === 0 || wanted.has(stateOf(found));
    const read = (from: string | null) => readExecutions(store.db, { below: from, limit: READ_ROWS, filter });
    const page = await readPage(context, {
      rows: matching(read, below, isWanted, context.signal),
      ...{ limit, item: ExecutionSchema, toMessage: executionToProto },
    });
    return page.answer(ListExecutionsResponseSchema, "executions", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(listing, page.next.execution.id),
    });
  };
}

/** Yield the matching rows, until the last one or until the caller stops. */
async function* matching(
  read: (below: string | null) => Promise<readonly ExecutionRow[]>,
  from: string | null,
  isWanted: (found: ExecutionRow) => boolean,
  signal: AbortSignal,
): AsyncGenerator<readonly ExecutionRow[]> {
  let below = from;
  for (;;) {
    signal.throwIfAborted();
    const rows = await read(below);
    yield rows.filter(isWanted);
    const last = rows.at(-1);
    if (last === undefined || rows.length < READ_ROWS) return;
    below = last.execution.id;
  }
}

/**
 * Find an execution by its exact id or, for people, by an unambiguous prefix. Throws EXECUTION_NOT_FOUND or
 * AMBIGUOUS_EXECUTION.
 */
export async function findExecution(db: Db, reference: string, allowPrefix: boolean): Promise<ExecutionRow> {
  const found = await (allowPrefix ? findExecutions(db, reference, SHOWN + 1) : getExecutions(db, [reference]));
  const [only, ...others] = found;
  if (only === undefined) throw await executionNotFound(db, reference);
  if (others.length === 0) return only;
  const matches = found.slice(0, SHOWN).map(({ execution }) => execution.id);
  const more = found.length > SHOWN ? ", ..." : "";
  const text = `${reference} is a prefix of several executions: ${matches.join(", ")}${more}; use a longer prefix`;
  throw refuse("AMBIGUOUS_EXECUTION", text, { metadata: { execution: reference, matches: matches.join(",") } });
}
