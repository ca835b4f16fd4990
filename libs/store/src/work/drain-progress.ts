import {
  drainStartedEvent,
  drainsThatBegin,
  endCordon,
  endDrain,
  type NewEvent,
  type SelectedDrain,
} from "@rollcall/domain";
import { sql } from "kysely";
import { type ReservedStore, recordTimeMs, type Tx } from "../database/store.ts";
import { lockNodes } from "../nodes/nodes.ts";
import { saveNodeEffects } from "../nodes/save-node.ts";
import { beginDrain, getDrains, lockSelectedDrains, type StoredDrain, saveDrained } from "./drains.ts";

/** A drain as it was when it was found to be over. A drain that is ordered again has another deadline. */
export interface JudgedDrain {
  readonly nodeId: string;
  /** Whether its node has yet to confirm the end of some of what it concerned. */
  readonly unconfirmed: boolean;
  readonly deadlineAtMs: number | null;
}

/**
 * Write that what drains concerned has ended, on the drains and on their nodes, whose rows are locked. Returns the
 * events. One that was cancelled, or ordered again, since it was judged is left out.
 *
 * @param actor the scheduler that found it so.
 */
export async function endDrains(tx: Tx, judged: readonly JudgedDrain[], actor: string): Promise<readonly NewEvent[]> {
  if (judged.length === 0) return [];
  const byNode = new Map(judged.map((one) => [one.nodeId, one]));
  const nodeIds = [...byNode.keys()];
  const nodes = await lockNodes(tx, nodeIds);
  const drains = await getDrains(tx, nodeIds);
  const by = { actor, message: "", atMs: await recordTimeMs(tx) };
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

/** Nodes that one look takes on. */
const NODES_A_LOOK = 100;

/**
 * Begin the drains whose turn it is in their selections: those of one selection in a transaction. How many began.
 * Any number of processes may do so at once.
 */
export async function beginWaitingDrains(store: ReservedStore): Promise<number> {
  const waiting = await store.db
    .selectFrom("drains")
    .select("selection")
    .distinct()
    .where("deadline", "is", null)
    .orderBy("selection")
    .limit(NODES_A_LOOK)
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
  const turns = new Set(drainsThatBegin(drains.map(toSelected)).slice(0, NODES_A_LOOK));
  const events: NewEvent[] = [];
  for (const before of drains.filter(({ nodeId }) => turns.has(nodeId))) {
    await beginDrain(tx, before);
    const after = { ...before, queued: false };
    events.push(drainStartedEvent({ ...BEGINS, subject: before.nodeId, before, after, message: before.reason }));
  }
  return { result: turns.size, events };
}

const BEGINS = { actor: "system", reason: "DRAIN_BEGINS" } as const;

/** Lift the cordons whose time has passed, some at a time. How many were lifted. */
export async function endCordons(store: ReservedStore): Promise<number> {
  const { result } = await store.change(async (tx) => {
    const nowMs = await recordTimeMs(tx);
    const { rows } = await sql<{ id: string }>`
      select id from nodes
      where holds @? '$[*].untilMs'::jsonpath
        and jsonb_path_exists(holds, '$[*] ? (@.untilMs <= $now)', ${JSON.stringify({ now: nowMs })}::jsonb)
      order by id
      limit ${NODES_A_LOOK}`.execute(tx);
    const events: NewEvent[] = [];
    let lifted = 0;
    // The holds may have changed while their locks were waited for.
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

function toSelected({ nodeId, maxParallel, queued, drainedAtMs }: StoredDrain): SelectedDrain {
  return { nodeId, maxParallel, queued, drained: drainedAtMs !== null };
}
