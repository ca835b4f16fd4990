import { connectionEvent, type NewEvent, replicaActor } from "../events/events.ts";
import type { Connection, HealthState } from "../states.ts";
import { connectionAfter } from "./connection.ts";

/** A session whose replica holds no lease any more. */
export interface OrphanedSession {
  readonly nodeId: string;
  readonly connection: Connection;
  readonly previousReplicaId: string;
}

/** What changes of a session that a replica takes over, beside its owner and its epoch. */
export interface Adoption {
  readonly connection: Connection;
  readonly event: NewEvent;
}

/**
 * Decide what changes when a replica takes a session over; null for a node that was disconnected already: it keeps
 * since when and why.
 */
export function adoptSession(
  { nodeId: subject, connection: before, previousReplicaId: displaces }: OrphanedSession,
  by: { readonly replicaId: string; readonly atMs: number },
): Adoption | null {
  const connection = connectionAfter("replica-lost", { actor: replicaActor(by.replicaId), atMs: by.atMs });
  if (connection.state === before.state) return null;
  return { connection, event: connectionEvent({ subject, before, after: connection, displaces }) };
}

/**
 * Whether contact with an adopted node's earlier replica still counts: until the node connects here or is judged.
 *
 * @param node `publicKey` is that of its last Hello here.
 */
export function mayHaveEarlierContact(
  node: { readonly publicKey: Uint8Array | null; readonly stream: object | null },
  health: HealthState,
): boolean {
  return node.publicKey === null && node.stream === null && health === "HEALTHY";
}
