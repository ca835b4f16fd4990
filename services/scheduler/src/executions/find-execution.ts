import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { type Db, findExecutions, type StoredExecution } from "@rollcall/store";

const SHOWN = 3;

/** The execution of an id, or of an unambiguous prefix. Throws EXECUTION_NOT_FOUND or AMBIGUOUS_EXECUTION. */
export async function findExecution(db: Db, reference: string): Promise<StoredExecution> {
  const found = await findExecutions(db, reference, SHOWN + 1);
  const [only, ...others] = found;
  if (only === undefined) throw executionNotFound(reference);
  if (others.length === 0) return only;
  const matches = found.slice(0, SHOWN).map(({ execution }) => execution.id);
  const more = found.length > SHOWN ? ", ..." : "";
  const text = `${reference} is a prefix of several executions: ${matches.join(", ")}${more}; use a longer prefix`;
  throw refuse("AMBIGUOUS_EXECUTION", text, { metadata: { execution: reference, matches: matches.join(",") } });
}

/** There is no such execution. */
export function executionNotFound(reference: string): ConnectError {
  const text = `there is no execution ${reference}: list them with \`rollcall job executions JOB\``;
  return refuse("EXECUTION_NOT_FOUND", text, { metadata: { execution: reference } });
}
