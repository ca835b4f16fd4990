import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import { connectionEvent, type NewEvent } from "@rollcall/domain";
import {
  openSessions,
  type ReservedStore,
  type SessionHello,
  type SessionOpening,
} from "@rollcall/store";
import type { Replica } from "../replica/replica.ts";
import { toText } from "../stream/hello-fields.ts";

/** A Hello whose proof holds. */
export interface VerifiedHello {
  readonly hello: Hello;
  /** Of the key that signed it. */
  readonly keyFingerprint: string;
  /** The peer as HOST:PORT. */
  readonly address: string;
}

/** Take the next epoch for each of these nodes, in one transaction. One answer for each, in their order. */
export async function openBatch(
  store: ReservedStore,
  replica: Replica,
  hellos: readonly VerifiedHello[],
): Promise<readonly SessionOpening[]> {
  const sessions = hellos.map((it) => toSession(it, replica.instance));
  const { result } = await store.change(async (tx) => {
    const { result: openings, events } = await openSessions(tx, sessions);
    return { result: openings, events: [...events, ...eventsOfMoves(openings, replica)] };
  });
  return result;
}

/** A node that comes from another replica without having left it: that one learns from this event that it is fenced. */
function eventsOfMoves(openings: readonly SessionOpening[], replica: Replica): NewEvent[] {
  return openings.flatMap((opening) => {
    if (opening.outcome !== "OPENED" || opening.connectionBefore !== "CONNECTED") return [];
    const { nodeId: subject, previous } = opening;
    if (previous.replicaId === null || previous.replicaId === replica.instance) return [];
    const connection = replica.openedConnection();
    return [connectionEvent({ subject, before: connection, after: connection })];
  });
}

function toSession(
  { hello, keyFingerprint, address }: VerifiedHello,
  replicaId: string,
): SessionHello {
  return {
    nodeId: hello.nodeId,
    replicaId,
    bootId: toText(hello.bootId),
    machineFingerprint: toText(hello.machineFingerprint),
    keyFingerprint,
    address,
  };
}
