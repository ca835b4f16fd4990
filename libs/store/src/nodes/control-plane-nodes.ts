import {
  type Connection,
  checkNewId,
  connectionAfter,
  connectionEvent,
  decideMembership,
  type InfoSummary,
  type JsonInfo,
  membershipEvent,
  type NewEvent,
  type NodeRecord,
  nodeInfoEvents,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { LaneStore, Tx } from "../database/store.ts";
import { beginAdmission } from "./new-nodes.ts";
import { insertNode, lockAlikeNodes, lockNode } from "./nodes.ts";
import { saveInfo } from "./save-info.ts";
import { removeNode } from "./save-node.ts";

/** A control-plane process, as the node that it appears as. */
export interface OrchestratorNode {
  readonly nodeId: string;
  /** The instance of its lease. */
  readonly instance: string;
  readonly info: JsonInfo;
  readonly infoDigest: string;
  readonly summary: InfoSummary;
  readonly labels: Readonly<Record<string, string>>;
  /** Where it can be reached, as `host:port`. */
  readonly address: string;
}

/** What a process that has ended left behind. */
export interface LostOrchestrator {
  readonly instance: string;
  /** Whether it gave its lease back or the lease ran out. */
  readonly signal: "goodbye" | "lease-expired";
  /** Who found out. */
  readonly actor: string;
}

/** Show this process as an approved, connected ORCHESTRATOR node. False when the id belongs to a compute node. */
export async function joinAsOrchestrator(store: LaneStore, node: OrchestratorNode): Promise<boolean> {
  const { result } = await store.change(async (tx) => {
    const events: NewEvent[] = [];
    await beginAdmission(tx, [node.nodeId]);
    const alike = await lockAlikeNodes(tx, [node.nodeId]);
    const ids = alike.map(({ id }) => id);
    // A node whose id looks like this one already has it.
    if (checkNewId(node.nodeId, ids) !== null) return { result: false, events: [] };
    const known = alike.find(({ id }) => id === node.nodeId) ?? null;
    if (known === null) events.push(...(await register(tx, node)));
    const current = known ?? (await lockNode(tx, node.nodeId));
    if (current === null || current.type !== "ORCHESTRATOR") return { result: false, events: [] };
    const report = {
      info: node.info,
      digest: node.infoDigest,
      summary: node.summary,
      agentLabels: node.labels,
    };
    const isNew = (await saveInfo(tx, node.nodeId, report)) === "saved";
    if (isNew && known !== null) events.push(...nodeInfoEvents(known, report));
    const actor = `node:${node.nodeId}`;
    const after = connectionAfter("opened", { actor, atMs: current.updatedAtMs });
    const isBack = current.connection.state !== after.state;
    await tx
      .updateTable("node_sessions")
      .set({
        epoch: sql<number>`epoch + 1`,
        replica_id: node.instance,
        address: node.address,
        opened_at: sql<Date>`now()`,
        // Of a process that is back before its lease had run out nothing shows that it was away.
        ...(isBack ? connectionColumns(after) : {}),
      })
      .where("node_id", "=", node.nodeId)
      .execute();
    if (isBack) {
      events.push(connectionEvent({ subject: node.nodeId, before: current.connection, after }));
    }
    return { result: true, events };
  });
  return result;
}

/**
 * Show the orchestrators of this instance as DISCONNECTED; the events of those that were not, for the caller to append.
 */
export async function orchestratorLost(tx: Tx, lost: LostOrchestrator): Promise<readonly NewEvent[]> {
  const events: NewEvent[] = [];
  for (const node of await lockOrchestrators(tx, lost.instance)) {
    const after = connectionAfter(lost.signal, { actor: lost.actor, atMs: node.updatedAtMs });
    if (node.connection.state === after.state) continue;
    await tx.updateTable("node_sessions").set(connectionColumns(after)).where("node_id", "=", node.id).execute();
    events.push(connectionEvent({ subject: node.id, before: node.connection, after }));
  }
  return events;
}

/**
 * Remove orchestrators that have been DISCONNECTED for `olderThanMs` and whose process holds no lease, each with a
 * tombstone; the ids that went.
 */
export async function expireOrchestrators(store: LaneStore, olderThanMs: number): Promise<readonly string[]> {
  const { result } = await store.change(async (tx) => {
    const { rows } = await sql<{ node_id: string }>`
      select node_id
      from node_sessions
      where node_type = 'ORCHESTRATOR'
        and connection = 'DISCONNECTED'
        and connection_since < now() - ${olderThanMs} * interval '1 millisecond'
        and not exists (select from leases where leases.instance = node_sessions.replica_id)
      order by node_id`.execute(tx);
    const events: NewEvent[] = [];
    for (const { node_id: id } of rows) {
      const node = await lockNode(tx, id);
      // Back, or gone, while its lock was waited for.
      if (node === null || node.connection.state === "CONNECTED") continue;
      const removal = { actor: "system", reason: "LEASE_EXPIRED", message: "its process is gone" };
      await removeNode(tx, node, removal);
      const event = membershipEvent({
        type: "node.deleted",
        subject: id,
        before: node.membership,
        after: null,
        actor: removal.actor,
        message: removal.message,
      });
      events.push({ ...event, reason: removal.reason });
    }
    return { result: events.map(({ subject }) => subject), events };
  });
  return result;
}

function connectionColumns({ state, reason, message, actor }: Connection) {
  return {
    connection: state,
    connection_since: sql<Date>`now()`,
    connection_reason: reason,
    connection_message: message,
    connection_actor: actor,
  };
}

/** No event when the id was taken meanwhile. */
async function register(tx: Tx, node: OrchestratorNode): Promise<readonly NewEvent[]> {
  const by = { actor: `node:${node.nodeId}`, message: "", atMs: 0 };
  const decision = decideMembership(
    null,
    node.nodeId,
    { kind: "register", manualApproval: false, type: "ORCHESTRATOR" },
    by,
  );
  if (!decision.ok || decision.next === null) throw new Error("a new orchestrator was refused");
  const membership = decision.next;
  if (!(await insertNode(tx, { id: node.nodeId, type: "ORCHESTRATOR", membership }))) return [];
  const subject = node.nodeId;
  return [membershipEvent({ type: "node.registered", subject, before: null, after: membership, ...by })];
}

async function lockOrchestrators(tx: Tx, instance: string): Promise<readonly NodeRecord[]> {
  const rows = await tx
    .selectFrom("node_sessions")
    .select("node_id")
    .where("replica_id", "=", instance)
    .where("node_type", "=", "ORCHESTRATOR")
    .orderBy("node_id")
    .execute();
  const nodes: NodeRecord[] = [];
  for (const { node_id: id } of rows) {
    const node = await lockNode(tx, id);
    if (node !== null && node.session.replicaId === instance) nodes.push(node);
  }
  return nodes;
}
