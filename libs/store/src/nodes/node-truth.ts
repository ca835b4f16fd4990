import {
  deriveScheduling,
  flappingEndedEvent,
  flappingHealth,
  type Health,
  type HealthPolicy,
  type Hold,
  hardwareEvent,
  hardwareOf,
  healthEvent,
  holdsFor,
  isRebootOver,
  isSameTroubles,
  isSteady,
  type NewEvent,
  rebootClearedEvent,
  schedulingEvent,
  type Trouble,
  withinPast,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, LaneStore, Tx } from "../database/store.ts";
import type { SessionAfter } from "../sessions/transition-plan.ts";
import { saveSessionStates } from "../sessions/transitions.ts";
import type { NodeRecord } from "./node-record.ts";
import { getNodes, lockWithSessions, saveHolds } from "./nodes.ts";

/** What the owner of a node knows of it that the record has to follow. */
export interface OwnersView {
  readonly nodeId: string;
  /** The session epoch under which it is held. */
  readonly epoch: number;
  readonly policy: HealthPolicy;
  /** What samples say is wrong with its GPUs; null as long as there were too few to tell. */
  readonly gpuTroubles: readonly Trouble[] | null;
}

/** A node that is to be looked after. */
export interface TroubledNode {
  readonly nodeId: string;
  readonly gpuTroubles: readonly Trouble[];
}

/** What becomes of one node. */
interface TruthPlan {
  readonly session: SessionAfter | null;
  readonly gpuTroubles: readonly Trouble[] | null;
  readonly isRebootOver: boolean;
  readonly holds: readonly Hold[] | null;
  readonly events: readonly NewEvent[];
}

/**
 * The nodes of a replica that flap, have rebooted of late, have something wrong with their hardware, or are held for
 * one of these; in order of id, at most `limit` after `after`. Costs two looks at small indexes while there are none.
 */
export async function troubledNodes(
  db: Db,
  replicaId: string,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly TroubledNode[]> {
  const { rows } = await sql<TroubledNode>`
    select node_id as "nodeId", gpu_troubles as "gpuTroubles"
    from node_sessions
    where replica_id = ${replicaId} and node_id > ${after}
      and (flapping_since is not null or gpu_troubles <> '[]' or rebooted_at is not null)
    union
    select s.node_id, s.gpu_troubles
    from nodes as n
    join node_sessions as s on s.node_id = n.id
    where s.replica_id = ${replicaId} and n.id > ${after}
      and (
        n.missing_hardware <> '[]' or n.holds @> '[{"kind": "FLAPPING"}]'
        or n.holds @> '[{"kind": "HARDWARE"}]'
      )
    order by 1
    limit ${limit}`.execute(db);
  return rows;
}

/** What is recorded of the GPUs of these nodes. */
export async function recordedTroubles(db: Db, ids: readonly string[]): Promise<readonly TroubledNode[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("node_sessions")
    .select(["node_id as nodeId", "gpu_troubles as gpuTroubles"])
    .where("node_id", "in", ids)
    .execute();
  return rows;
}

/**
 * Bring the record up to what follows from it and from what the owner knows: a flapping that is over, troubles with
 * GPUs, and the holds of FLAPPING and HARDWARE; those of others stay as they are. Each effective change has its event.
 * Nodes that do not belong to (replica, epoch) any more are left alone. Nothing is locked while there is nothing to
 * change. Answers the ids of the nodes that changed.
 */
export async function settleTruth(
  store: LaneStore,
  replicaId: string,
  views: readonly OwnersView[],
): Promise<readonly string[]> {
  const byNode = new Map(views.map((view) => [view.nodeId, view]));
  const plan = (node: NodeRecord, nowMs: number) => planTruth(node, byNode.get(node.id), { replicaId, nowMs });
  const nowMs = await readNow(store.db);
  const looked = await getNodes(store.db, [...byNode.keys()]);
  const due = looked.filter((node) => plan(node, nowMs) !== null).map(({ id }) => id);
  if (due.length === 0) return [];
  const { result } = await store.change(async (tx) => {
    const locked = await lockWithSessions(tx, due);
    const lockedAtMs = await readNow(tx);
    const events: NewEvent[] = [];
    const changed: string[] = [];
    for (const node of locked) {
      const planned = plan(node, lockedAtMs);
      if (planned === null) continue;
      await save(tx, node, planned);
      changed.push(node.id);
      events.push(...planned.events);
    }
    return { result: changed, events };
  });
  return result;
}

interface Circumstances {
  readonly replicaId: string;
  /** Wall time of the record. */
  readonly nowMs: number;
}

function planTruth(
  node: NodeRecord,
  view: OwnersView | undefined,
  { replicaId, nowMs }: Circumstances,
): TruthPlan | null {
  const { epoch, replicaId: owner } = node.session;
  if (view === undefined || owner !== replicaId || epoch !== view.epoch) return null;
  const actor = `replica:${replicaId}`;
  const flapping = planFlapping(node, view, { actor, nowMs });
  const gpuTroubles = planGpus(node, view);
  const rebootOver = node.rebootedAtMs !== null && isRebootOver(node.rebootedAtMs, nowMs, view.policy);
  const causes = {
    history: flapping.history,
    troubles: [...node.missingHardware, ...(gpuTroubles ?? node.gpuTroubles)],
    rebootedAtMs: rebootOver ? null : node.rebootedAtMs,
  };
  const holds = holdsFor(node.holds, causes, view.policy, { actor, atMs: nowMs });
  const hasChanged = flapping.session !== null || gpuTroubles !== null || rebootOver || holds !== node.holds;
  if (!hasChanged) return null;
  const hardware = hardwareEvent({
    ...{ subject: node.id, actor },
    before: node.gpuTroubles,
    after: gpuTroubles ?? node.gpuTroubles,
  });
  const reboot = rebootOver ? [rebootClearedEvent(node.id, actor)] : [];
  return {
    session: flapping.session,
    gpuTroubles,
    isRebootOver: rebootOver,
    holds: holds === node.holds ? null : holds,
    events: [
      ...flapping.events,
      ...(hardware === null ? [] : [hardware]),
      ...reboot,
      ...holdEvents(node, holds, { actor, nowMs }),
    ],
  };
}

function planFlapping(
  node: NodeRecord,
  { policy: { flappingHoldMs } }: OwnersView,
  { actor, nowMs }: { readonly actor: string; readonly nowMs: number },
): Pick<TruthPlan, "session" | "events"> & { readonly history: NodeRecord["history"] } {
  const { recordedHealth, detectedHealth, connection, mark } = node;
  const { flappingSinceMs } = node.history;
  if (flappingSinceMs === null) return { session: null, events: [], history: node.history };
  const history = withinPast(node.history, nowMs);
  const isOver = isSteady(history, nowMs, flappingHoldMs);
  const next = isOver ? { changes: [], flappingSinceMs: null } : history;
  const shown = since(recordedHealth, flappingHealth(detectedHealth, next, flappingHoldMs), nowMs);
  const isShownSame =
    shown.state === recordedHealth.state &&
    shown.reason === recordedHealth.reason &&
    shown.message === recordedHealth.message;
  if (isShownSame && history === node.history) return { session: null, events: [], history };
  const health = isShownSame ? recordedHealth : shown;
  const steadyMs = nowMs - (history.changes.at(-1) ?? nowMs);
  const end = { actor, steadyMs, flappingMs: nowMs - flappingSinceMs };
  const isNews = !isShownSame && mark === null;
  return {
    history: next,
    session: { ...next, connection, health, detected: isOver ? null : detectedHealth },
    events: [
      ...(isOver ? [flappingEndedEvent(node.id, end)] : []),
      ...(isNews ? [healthEvent({ subject: node.id, before: recordedHealth, after: shown })] : []),
    ],
  };
}

/**
 * Null when the record has it already. A GPU that the node does not list any more is not gone from its samples: it is
 * missing, or was never approved.
 */
function planGpus(node: NodeRecord, view: OwnersView): readonly Trouble[] | null {
  if (view.gpuTroubles === null) return null;
  const listed = new Set(hardwareOf(node.info ?? undefined)?.gpus.map(({ index }) => index));
  const troubles = view.gpuTroubles.filter(
    ({ kind, part }) => kind !== "GPU_GONE" || listed.has(Number(part.slice("gpu ".length))),
  );
  return isSameTroubles(troubles, node.gpuTroubles) ? null : troubles;
}

function holdEvents(
  node: NodeRecord,
  holds: readonly Hold[],
  { actor, nowMs }: { readonly actor: string; readonly nowMs: number },
): readonly NewEvent[] {
  if (holds === node.holds) return [];
  const after = deriveScheduling(holds, nowMs);
  const message = after.message;
  return [schedulingEvent({ subject: node.id, before: node.scheduling, after, actor, message })];
}

async function save(tx: Tx, node: NodeRecord, plan: TruthPlan): Promise<void> {
  if (plan.holds !== null) await saveHolds(tx, node.id, plan.holds);
  if (plan.session !== null) await saveSessionStates(tx, new Map([[node.id, plan.session]]));
  if (plan.gpuTroubles === null && !plan.isRebootOver) return;
  await tx
    .updateTable("node_sessions")
    .set({
      ...(plan.gpuTroubles === null ? {} : { gpu_troubles: JSON.stringify(plan.gpuTroubles) }),
      ...(plan.isRebootOver ? { rebooted_at: null } : {}),
    })
    .where("node_id", "=", node.id)
    .execute();
}

function since(before: Health, after: Health, nowMs: number): Health {
  return { ...after, sinceMs: before.state === after.state ? before.sinceMs : nowMs };
}

/** The time of the record as it is now, not as it was when the transaction began: a lock may have been waited for. */
async function readNow(db: Db): Promise<number> {
  const { rows } = await sql<{ now: Date }>`
    select clock_timestamp()::timestamptz(3) as now`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the record told no time");
  return row.now.getTime();
}
