import { conditionsOf, describeConditions } from "@rollcall/domain";
import { type Db, getNodes, type StoredExecution } from "@rollcall/store";

/** Nodes that are named at most. */
const MOST_NODES = 5;

/**
 * Say of executions that have not started which of their nodes report conditions, a text for each node: no other answer
 * about a job or an execution would say why nothing happens there.
 */
export async function unstartedOnNodes(db: Db, found: readonly StoredExecution[]): Promise<readonly string[]> {
  const counts = new Map<string, number>();
  for (const { execution, observation } of found) {
    const { nodeId, state, desired } = execution;
    const hasStarted = observation !== null && observation.observed !== "STARTING";
    if (state === "LIVE" && desired === "RUN" && !hasStarted) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  }
  const nodes = await getNodes(db, [...counts.keys()]);
  const texts = nodes.flatMap(({ id, info }) => {
    const conditions = conditionsOf(info ?? undefined);
    if (conditions.length === 0) return [];
    const count = counts.get(id) ?? 0;
    const what = count === 1 ? "an execution has" : `${count} executions have`;
    return [`${what} not started on ${id}, which reports ${describeConditions(conditions)}`];
  });
  const more = texts.length - MOST_NODES;
  return more > 0 ? [...texts.slice(0, MOST_NODES), `${more} more nodes report conditions`] : texts;
}
