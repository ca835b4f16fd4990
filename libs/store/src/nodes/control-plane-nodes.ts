import {
  admitControlPlane,
  type ConnectionChange,
  controlPlaneLost,
  controlPlaneOpened,
  expireControlPlane,
  type InfoSummary,
  type JsonInfo,
  type NewEvent,
  type Node,
  nodeInfoEvents,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { LaneStore, Tx } from "../database/store.ts";
import { beginAdmission } from "./new-nodes.ts";
import { insertNode, lockAlikeNodes, lockNode } from "./nodes.ts";
import { saveInfo } from "./save-info.ts";
import { removeNode } from "./save-node.ts";

/** The node that represents a control-plane process. */
export interface OrchestratorNode {
  readonly nodeId: string;
  /** The instance that holds the process's lease. */
  readonly instance: string;
  readonly info: JsonInfo;
  readonly infoDigest: string;
  readonly summary: InfoSummary;
  readonly labels: Readonly<Record<string, string>>;
  /** The process's address, as `host:port`. */
  readonly address: string;
}

/** A process that has ended, and how. */
export interface LostOrchestrator {
  readonly instance: string;
  /** "goodbye" if the process released its lease, "lease-expired" if the lease expired. */
  readonly signal: "goodbye" | "lease-expired";
  /** The actor that noticed that the process has ended. */
  readonly actor: string;
}

/**
 * Register this process as an approved, connected ORCHESTRATOR node. Returns false when its id belongs to a compute
 * node.
 */
export async function joinAsOrchestrator(store: LaneStore, node: OrchestratorNode): Promise<boolean> {
  const { result } = await store.change(async (tx) => {
    const events: NewEvent[] = [];
    await beginAdmission(tx, [node.nodeId]);
    const alike = await lockAlikeNodes(tx, [node.nodeId]);
    const admission = admitControlPlane(node.nodeId, alike);
    if (admission.kind === "taken") return { result: false, events: [] };
    if (admission.kind === "new") {
      const { membership, event } = admission;
      if (await insertNode(tx, { id: node.nodeId, type: "ORCHESTRATOR", membership })) events.push(event);
    }
    const known = alike.find(({ id }) => id === node.nodeId) ?? null;
    const current = known ?? (await lockNode(tx, node.nodeId));
    // Stop if another node has taken the id between the read and the insert.
    if (current === null || admitControlPlane(node.nodeId, [current]).kind !== "known") {
      return { result: false, events: [] };
    }
    const report = {
      info: node.info,
      digest: node.infoDigest,
      summary: node.summary,
      agentLabels: node.labels,
    };
    const isNew = (await saveInfo(tx, node.nodeId, report)) === "saved";
    if (isNew && known !== null) events.push(...nodeInfoEvents(known, report));
    const opened = controlPlaneOpened(current);
    await tx
      .updateTable("node_sessions")
      .set({
        epoch: sql<number>`epoch + 1`,
        replica_id: node.instance,
        address: node.address,
        opened_at: sql<Date>`now()`,
        ...(opened === null ? {} : connectionColumns(opened)),
      })
      .where("node_id", "=", node.nodeId)
      .execute();
    if (opened !== null) events.push(opened.event);
    return { result: true, events };
  });
  return result;
}

/**
 * Mark the orchestrators of this instance as DISCONNECTED. Returns the events for the caller to append: one for each
 * orchestrator that was not DISCONNECTED before.
 */
export async function orchestratorLost(tx: Tx, lost: LostOrchestrator): Promise<readonly NewEvent[]> {
  const events: NewEvent[] = [];
  for (const node of await lockOrchestrators(tx, lost.instance)) {
    const change = controlPlaneLost(node, lost.signal, lost.actor);
    if (change === null) continue;
    await tx.updateTable("node_sessions").set(connectionColumns(change)).where("node_id", "=", node.id).execute();
    events.push(change.event);
  }
  return events;
}

/**
 * Remove orchestrators that have been DISCONNECTED for `olderThanMs` and whose process holds no lease, each with a
 * tombstone. Returns their ids.
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
      // Check again, because the node may have reconnected or been removed while this waited for its lock.
      const collection = node === null ? null : expireControlPlane(node);
      if (node === null || collection === null) continue;
      await removeNode(tx, node, collection.removal);
      events.push(collection.event);
    }
    return { result: events.map(({ subject }) => subject), events };
  });
  return result;
}

function connectionColumns({ after: { state, reason, message, actor } }: ConnectionChange) {
  return {
    connection: state,
    connection_since: sql<Date>`now()`,
    connection_reason: reason,
    connection_message: message,
    connection_actor: actor,
  };
}

async function lockOrchestrators(tx: Tx, instance: string): Promise<readonly Node[]> {
  const rows = await tx
    .selectFrom("node_sessions")
    .select("node_id")
    .where("replica_id", "=", instance)
    .where("node_type", "=", "ORCHESTRATOR")
    .orderBy("node_id")
    .execute();
  const nodes: Node[] = [];
  for (const { node_id: id } of rows) {
    const node = await lockNode(tx, id);
    if (node !== null && node.session.replicaId === instance) nodes.push(node);
  }
  return nodes;
}
