import { connectionEvent, type NewEvent, replicaActor } from "../events/events.ts";
import type { Connection, HealthState } from "../states.ts";
import { connectionAfter } from "./connection.ts";

/** A session whose replica no longer has a lease. */
export interface OrphanedSession {
  readonly nodeId: string;
  readonly connection: Connection;
  readonly previousReplicaId: string;
}

/** The changes to a session that a replica takes over, apart from its owner and epoch. */
export interface Adoption {
  readonly connection: Connection;
  readonly event: NewEvent;
}

/**
 * Decide how a session changes when a replica takes it over. Null if the node was already disconnected: its
 * connection keeps the earlier time and reason.
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
 * Whether frames that an adopted node sent to its previous replica may still count as contact. They count until
 * the node connects to this replica or is declared unhealthy.
 *
 * @param node `publicKey` is from its last Hello to this replica; null if there was none.
 */
export function mayHaveEarlierContact(
  node: { readonly publicKey: Uint8Array | null; readonly stream: object | null },
  health: HealthState,
): boolean {
  return node.publicKey === null && node.stream === null && health === "HEALTHY";
}
