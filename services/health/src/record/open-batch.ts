import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import { openSessions, type ReservedStore, type SessionHello, type SessionOpening } from "@rollcall/store";
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
  const { result } = await store.change((tx) => openSessions(tx, sessions));
  return result;
}

function toSession({ hello, keyFingerprint, address }: VerifiedHello, replicaId: string): SessionHello {
  return {
    nodeId: hello.nodeId,
    replicaId,
    bootId: toText(hello.bootId),
    machineFingerprint: toText(hello.machineFingerprint),
    keyFingerprint,
    address,
  };
}
