import type { JoinTokenRefusal, Membership, NodeType, Refusal, RefusalReason } from "@rollcall/domain";
import type { AuditedCall } from "@rollcall/rpc";
import type { InfoReport } from "@rollcall/store";
import type { GivenToken } from "./admission.ts";

/** A node that asks to join, its proof verified against the key that it gives. The rest is the record's to decide. */
export interface Registration {
  readonly nodeId: string;
  /** Raw Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly fingerprint: string;
  /** What was signed. It may be used once. */
  readonly nonce: Uint8Array;
  readonly report: InfoReport;
  /** Null for one without. */
  readonly joinToken: GivenToken | null;
  /** The call by which it asks, for the audit log. */
  readonly call: AuditedCall;
}

/** A node of the record as far as a registration is concerned. */
export interface KnownNode {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  /** Whether it is connected. */
  readonly alive: boolean;
  /** Null for an orchestrator, which has no key. */
  readonly fingerprint: string | null;
  /** The key that it has offered and not used yet; null when there is none. */
  readonly nextFingerprint: string | null;
  readonly infoDigest: string | null;
}

/** Why a registration is refused. */
export type RegistrationRefusal =
  | Refusal<RefusalReason | "CHALLENGE_INVALID" | "NODE_KEY_MISMATCH" | "NODE_KEY_IN_USE" | "NODE_ID_CONFUSABLE">
  | JoinTokenRefusal;

/** What comes of one registration of a batch. */
export type RegistrationResult =
  | {
      readonly ok: true;
      readonly nodeId: string;
      /** Whether the node was not known before. */
      readonly created: boolean;
      /** What the node is told: "node registered" or "node reconnected". */
      readonly message: string;
    }
  | { readonly ok: false; readonly nodeId: string; readonly refusal: RegistrationRefusal };

/** How a nonce is named in sets and maps. */
export function nonceName(nonce: Uint8Array): string {
  return Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength).toString("base64");
}
