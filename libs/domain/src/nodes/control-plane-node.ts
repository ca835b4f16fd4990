import { connectionEvent, type NewEvent } from "../events/events.ts";
import { type Collection, collected } from "../membership/collection.ts";
import { decideMembership } from "../membership/membership.ts";
import { membershipEvent } from "../membership/membership-events.ts";
import { checkNewId } from "../membership/node-id.ts";
import { type ConnectionSignal, connectionAfter } from "../session/connection.ts";
import type { Connection, Membership } from "../states.ts";
import type { Node } from "./node.ts";

/** The node that represents a control-plane process. Node has these fields. */
export type ControlPlaneNode = Pick<Node, "id" | "membership" | "connection" | "updatedAtMs">;

/** Whether a control-plane process can use a node id. */
export type ControlPlaneAdmission =
  /** A compute node has the id, or an id that differs only in case. */
  | { readonly kind: "taken" }
  /** The process has joined before. */
  | { readonly kind: "known" }
  | { readonly kind: "new"; readonly membership: Membership; readonly event: NewEvent };

/** A connection to write, and its event. */
export interface ConnectionChange {
  readonly after: Connection;
  readonly event: NewEvent;
}

/**
 * Decide whether a control-plane process can use this node id.
 *
 * @param alike the nodes whose id is the same or differs only in case.
 */
export function admitControlPlane(nodeId: string, alike: readonly Pick<Node, "id" | "type">[]): ControlPlaneAdmission {
  const ids = alike.map(({ id }) => id);
  if (checkNewId(nodeId, ids) !== null) return { kind: "taken" };
  const known = alike.find(({ id }) => id === nodeId);
  if (known !== undefined) return { kind: known.type === "ORCHESTRATOR" ? "known" : "taken" };
  const by = { actor: `node:${nodeId}`, message: "", atMs: 0 };
  const command = { kind: "register", manualApproval: false, type: "ORCHESTRATOR" } as const;
  const decision = decideMembership(null, nodeId, command, by);
  if (!decision.ok || decision.next === null) throw new Error("a new control-plane process was refused");
  const membership = decision.next;
  const event = membershipEvent({ type: "node.registered", subject: nodeId, before: null, after: membership, ...by });
  return { kind: "new", membership, event };
}

/**
 * Decide what changes when the process acquires its lease. Null if the process returned before its previous lease
 * expired, so that nothing changes.
 */
export function controlPlaneOpened(node: ControlPlaneNode): ConnectionChange | null {
  return connectionChange(node, "opened", `node:${node.id}`);
}

/** Decide what changes when the process is gone; null if the store already shows it as gone. */
export function controlPlaneLost(
  node: ControlPlaneNode,
  signal: "goodbye" | "lease-expired",
  actor: string,
): ConnectionChange | null {
  return connectionChange(node, signal, actor);
}

/** Decide to delete the node of a process that has been gone for a long time; null if the process has returned. */
export function expireControlPlane(node: ControlPlaneNode): Collection | null {
  if (node.connection.state === "CONNECTED") return null;
  return collected(node, { reason: "LEASE_EXPIRED", message: "its process is gone" });
}

function connectionChange(node: ControlPlaneNode, signal: ConnectionSignal, actor: string): ConnectionChange | null {
  const after = connectionAfter(signal, { actor, atMs: node.updatedAtMs });
  if (after.state === node.connection.state) return null;
  return { after, event: connectionEvent({ subject: node.id, before: node.connection, after }) };
}
