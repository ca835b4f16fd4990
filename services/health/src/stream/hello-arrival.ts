import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import { proofText } from "@rollcall/domain";
import { verifyProofAside } from "@rollcall/identity";
import {
  type EventRow,
  keysInForce,
  type LabelsOfNode,
  type NodeKeys,
  type PublicKey,
  type SessionHello,
} from "@rollcall/store";
import type { StoredOpening } from "../replica/health-store.ts";
import { toText } from "../session/hello-fields.ts";
import type { GreetedStream } from "../session/session-host.ts";
import type { Greeting } from "./hello-gate.ts";

/** A Hello that has not been handled yet. */
export interface Arrival {
  readonly stream: GreetedStream;
  readonly hello: Hello;
  readonly nonce: Uint8Array;
  /** See LiveNode. */
  readonly clockSkewMs: number | null;
}

/** A Hello with a valid proof. Collects the events of its node while the store is read. */
export interface Candidate extends Arrival {
  /** The key that signed the Hello. */
  readonly key: PublicKey;
  readonly events: EventRow[];
}

/** The stored data of a node whose session is open. */
export interface Known {
  readonly labels: LabelsOfNode;
  /** The agent must carry out a required key rotation within this time. */
  readonly rotateWithinMs: number;
}

/** The node id and peer of an arrival. */
export function greetingOf({ hello, stream }: Arrival): Greeting {
  return { nodeId: hello.nodeId, peer: stream.peer };
}

/** The key that signed a Hello, if it is one of the node's current keys; otherwise undefined. */
export async function signerOf(
  arrival: Arrival,
  keys: NodeKeys,
  clusterId: string,
  isSigned: ProofCheck | null,
): Promise<PublicKey | undefined> {
  for (const key of keysInForce(keys)) {
    if (await isSignedBy(arrival, key.publicKey, clusterId, isSigned)) return key;
  }
  return undefined;
}

/** Checks whether a key signed a Hello. */
export type ProofCheck = (arrival: Arrival, publicKey: Uint8Array, clusterId: string) => boolean;

/** Whether this key signed a Hello. If `isSigned` is null, the signature is verified off the event loop. */
export async function isSignedBy(
  arrival: Arrival,
  publicKey: Uint8Array,
  clusterId: string,
  isSigned: ProofCheck | null,
): Promise<boolean> {
  if (isSigned !== null) return isSigned(arrival, publicKey, clusterId);
  return verifyProofAside(publicKey, textOf(arrival, clusterId), arrival.hello.signature);
}

function textOf({ stream, hello, nonce }: Arrival, clusterId: string): string {
  return proofText({ method: stream.proofMethod, clusterId, nodeId: hello.nodeId, nonce });
}

/** Whether a key is still valid. */
export function isInForce(keys: NodeKeys, key: PublicKey): boolean {
  return keysInForce(keys).some(({ fingerprint }) => fingerprint === key.fingerprint);
}

/** The ids of nodes that do not exist. */
export function unknownIn(openings: readonly StoredOpening[]): readonly string[] {
  return openings.filter(({ outcome }) => outcome === "UNKNOWN_NODE").map(({ nodeId }) => nodeId);
}

/** The part of a Hello that is stored. */
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

/** The distinct nodes of these Hellos. */
export function idsOf(arrivals: readonly Arrival[]): readonly string[] {
  return [...new Set(arrivals.map(({ hello }) => hello.nodeId))];
}
