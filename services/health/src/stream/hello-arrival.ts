import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import { proofText } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { verifyProof } from "@rollcall/identity";
import {
  keysInForce,
  type LabelsOfNode,
  type NodeKeys,
  type PublicKey,
  type SessionHello,
  type SessionOpening,
  type StoredEvent,
} from "@rollcall/store";
import type { GreetedStream } from "../session/session-host.ts";
import type { Greeting } from "./hello-admission.ts";
import { toText } from "./hello-fields.ts";

/** A Hello on its way to the record. */
export interface Arrival {
  readonly stream: GreetedStream;
  readonly hello: Hello;
  readonly nonce: Uint8Array;
  /** See HeldNode. */
  readonly clockSkewMs: number | null;
}

/** One whose proof holds. While the record is asked, what happens to its node meanwhile is kept. */
export interface Candidate extends Arrival {
  /** The one that signed the Hello. */
  readonly key: PublicKey;
  readonly events: StoredEvent[];
}

/** What the record says of a node once its session is open. */
export interface Known {
  readonly labels: LabelsOfNode;
  /** Within which time its key is to be rotated, if it is. */
  readonly rotateWithinMs: number;
}

/** Who says hello, as the admission knows them. */
export function greetingOf({ hello, stream }: Arrival): Greeting {
  return { nodeId: hello.nodeId, peer: stream.peer };
}

/** Which of the keys that count signed a Hello. */
export function signerOf(
  arrival: Arrival,
  keys: NodeKeys,
  clusterId: string,
  isSigned: ProofCheck,
): PublicKey | undefined {
  return keysInForce(keys).find(({ publicKey }) => isSigned(arrival, publicKey, clusterId));
}

/** Tells whether a Hello is signed by a key. */
export type ProofCheck = (arrival: Arrival, publicKey: Uint8Array, clusterId: string) => boolean;

/** Whether a Hello is signed by this key. */
export function isSignedBy({ stream, hello, nonce }: Arrival, publicKey: Uint8Array, clusterId: string): boolean {
  const { nodeId, signature } = hello;
  const text = proofText({ method: stream.proofMethod, clusterId, nodeId, nonce });
  return verifyProof(publicKey, text, signature);
}

/** Whether a key counts still. */
export function isInForce(keys: NodeKeys, key: PublicKey): boolean {
  return keysInForce(keys).some(({ fingerprint }) => fingerprint === key.fingerprint);
}

/** The nodes that turned out not to be there. */
export function unknownIn(openings: readonly SessionOpening[]): readonly string[] {
  return openings.filter(({ outcome }) => outcome === "UNKNOWN_NODE").map(({ nodeId }) => nodeId);
}

/** What is recorded of a Hello whose proof holds. */
export function toSessionHello({ hello, key, stream }: Candidate): Omit<SessionHello, "replicaId"> {
  return {
    nodeId: hello.nodeId,
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

/** The error of a Hello of what can be no node. */
export function invalidNodeId(nodeId: string) {
  const description = "a node id is 1-63 characters of [A-Za-z0-9._-] and starts with a letter or digit";
  return refuse("INVALID_NODE_ID", `${JSON.stringify(nodeId)} is no node id: ${description}`, {
    metadata: { node: nodeId },
    violations: [{ field: "hello.node_id", description }],
  });
}
