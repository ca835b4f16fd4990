import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import { proofText } from "@rollcall/domain";
import { verifyProof, verifyProofAside } from "@rollcall/identity";
import {
  keysInForce,
  type LabelsOfNode,
  type NodeKeys,
  type PublicKey,
  type SessionHello,
  type StoredEvent,
} from "@rollcall/store";
import type { RecordedOpening } from "../record/health-record.ts";
import type { GreetedStream } from "../session/session-host.ts";
import { toText } from "./hello-fields.ts";
import type { Greeting } from "./hello-gate.ts";

/** A Hello on its way to the record. */
export interface Arrival {
  readonly stream: GreetedStream;
  readonly hello: Hello;
  readonly nonce: Uint8Array;
  /** See HeldNode. */
  readonly clockSkewMs: number | null;
}

/** A Hello with a valid proof. Keeps the events of its node while the record is read. */
export interface Candidate extends Arrival {
  /** The key that signed the Hello. */
  readonly key: PublicKey;
  readonly events: StoredEvent[];
}

/** The record of a node once its session is open. */
export interface Known {
  readonly labels: LabelsOfNode;
  /** The time within which a required key rotation is due. */
  readonly rotateWithinMs: number;
}

/** The greeting of an arrival. */
export function greetingOf({ hello, stream }: Arrival): Greeting {
  return { nodeId: hello.nodeId, peer: stream.peer };
}

/** The key in force that signed a Hello. */
export async function signerOf(
  arrival: Arrival,
  keys: NodeKeys,
  clusterId: string,
  isSigned: ProofCheck | null,
): Promise<PublicKey | undefined> {
  for (const key of keysInForce(keys)) {
    const isIts =
      isSigned === null
        ? await verifyProofAside(key.publicKey, textOf(arrival, clusterId), arrival.hello.signature)
        : isSigned(arrival, key.publicKey, clusterId);
    if (isIts) return key;
  }
  return undefined;
}

/** Reports whether a key signed a Hello. */
export type ProofCheck = (arrival: Arrival, publicKey: Uint8Array, clusterId: string) => boolean;

/** Whether this key signed a Hello. */
export function isSignedBy(arrival: Arrival, publicKey: Uint8Array, clusterId: string): boolean {
  return verifyProof(publicKey, textOf(arrival, clusterId), arrival.hello.signature);
}

function textOf({ stream, hello, nonce }: Arrival, clusterId: string): string {
  return proofText({ method: stream.proofMethod, clusterId, nodeId: hello.nodeId, nonce });
}

/** Whether a key is still in force. */
export function isInForce(keys: NodeKeys, key: PublicKey): boolean {
  return keysInForce(keys).some(({ fingerprint }) => fingerprint === key.fingerprint);
}

/** The nodes that do not exist. */
export function unknownIn(openings: readonly RecordedOpening[]): readonly string[] {
  return openings.filter(({ outcome }) => outcome === "UNKNOWN_NODE").map(({ nodeId }) => nodeId);
}

/** The part of a Hello that is recorded. */
export function toSessionHello({ hello, key, stream }: Candidate): Omit<SessionHello, "replicaId"> {
  return {
    nodeId: hello.nodeId,
    instanceId: toText(hello.instanceId),
    bootId: toText(hello.bootId),
    machineFingerprint: toText(hello.machineFingerprint),
    keyFingerprint: key.fingerprint,
    address: stream.peer,
  };
}

/** The nodes that say hello, each once. */
export function idsOf(arrivals: readonly Arrival[]): readonly string[] {
  return [...new Set(arrivals.map(({ hello }) => hello.nodeId))];
}
