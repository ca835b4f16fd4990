import {
  drainStartedEvent,
  drainsThatBegin,
  endCordon,
  endDrain,
  type NewEvent,
  type SelectedDrain,
} from "@rollcall/domain";
import { sql } from "kysely";
import { type ReservedStore, storeTimeMs, type Tx } from "../database/store.ts";
import { lockNodes } from "../nodes/nodes.ts";
import { saveNodeEffects } from "../nodes/save-node.ts";
import { beginDrain, type DrainRow, getDrains, lockSelectedDrains, saveDrained } from "./drains.ts";

/**
 * A drain whose executions the scheduler found to have ended. If the drain is ordered again, its deadline
 * changes.
 */
export interface EvaluatedDrain {
  readonly nodeId: string;
  /** Whether the node has not yet confirmed the end of some executions. */
  readonly unconfirmed: boolean;
  readonly deadlineAtMs: number | null;
}

/**
 * Record that the executions of drains have ended, on the drains and on their nodes. Locks the nodes' rows.
 * Returns the events to append. Drains that were cancelled or ordered again since the evaluation are left out.
 *
 * @param actor the scheduler that evaluated the drains.
 */
export async function endDrains(
  tx: Tx,
  evaluated: readonly EvaluatedDrain[],
  actor: string,
): Promise<readonly NewEvent[]> {
  if (evaluated.length === 0) return [];
  const byNode = new Map(evaluated.map((one) => [one.nodeId, one]));
  const nodeIds = [...byNode.keys()];
  const nodes = await lockNodes(tx, nodeIds);
  const drains = await getDrains(tx, nodeIds);
  const by = { actor, message: "", atMs: await storeTimeMs(tx) };
  const events: NewEvent[] = [];
  for (const node of nodes) {
    const drain = drains.get(node.id);
    const found = byNode.get(node.id);
    if (found === undefined || drain === undefined || found.deadlineAtMs !== drain.deadlineAtMs) continue;
    const isConfirmed = !found.unconfirmed;
    if (drain.queued || (drain.drainedAtMs !== null && !(drain.unconfirmed && isConfirmed))) continue;
    await saveDrained(tx, node.id, isConfirmed);
    const ended = endDrain(node, isConfirmed, by);
    if (ended === null) continue;
    await saveNodeEffects(tx, node, ended.effects);
    events.push(...ended.events);
  }
  return events;
}

/** Maximum number of nodes, or of selections, to handle at a time. */
const NODES_PER_SCAN = 100;

/**
 * Start the drains that are next in their selections, with one transaction per selection. Returns how many drains
 * started. Several processes can call this concurrently.
 */
export async function beginWaitingDrains(store: ReservedStore): Promise<number> {
  const waiting = await store.db
    .selectFrom("drains")
    .select("selection")
    .distinct()
    .where("deadline", "is", null)
    .orderBy("selection")
    .limit(NODES_PER_SCAN)
    .execute();
  let begun = 0;
  for (const { selection } of waiting) {
    const { result } = await store.change((tx) => beginSome(tx, selection));
    begun += result;
  }
  return begun;
}

async function beginSome(tx: Tx, selection: string) {
  const drains = await lockSelectedDrains(tx, selection);
  const turns = new Set(drainsThatBegin(drains.map(toSelected)).slice(0, NODES_PER_SCAN));
  const events: NewEvent[] = [];
  for (const before of drains.filter(({ nodeId }) => turns.has(nodeId))) {
    await beginDrain(tx, before);
    const after = { ...before, queued: false };
    events.push(drainStartedEvent({ ...BEGINS, subject: before.nodeId, before, after, message: before.reason }));
  }
  return { result: turns.size, events };
}

const BEGINS = { actor: "system", reason: "DRAIN_BEGINS" } as const;

/** Lift expired cordons, at most one batch of nodes. Returns how many. */
export async function endCordons(store: ReservedStore): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    select id from nodes
    where holds @? '$[*].untilMs'::jsonpath
      and jsonb_path_exists(
        holds,
        '$[*] ? (@.untilMs <= $now)',
        jsonb_build_object('now', extract(epoch from clock_timestamp()) * 1000)
      )
    order by id
    limit ${NODES_PER_SCAN}`.execute(store.db);
  if (rows.length === 0) return 0;
  const { result } = await store.change(async (tx) => {
    const nowMs = await storeTimeMs(tx);
    const events: NewEvent[] = [];
    let lifted = 0;
    // Read the holds again, because they may have changed while this waited for the locks.
    for (const node of await lockNodes(
      tx,
      rows.map(({ id }) => id),
    )) {
      const ended = endCordon(node, nowMs);
      if (ended === null) continue;
      await saveNodeEffects(tx, node, ended.effects);
      events.push(...ended.events);
      lifted += 1;
    }
    return { result: lifted, events };
  });
  return result;
}

function toSelected({ nodeId, maxParallel, queued, drainedAtMs }: DrainRow): SelectedDrain {
  return { nodeId, maxParallel, queued, drained: drainedAtMs !== null };
}
