import { createHmac, timingSafeEqual } from "node:crypto";

/** A call from one replica to another. */
export interface ReplicaCall {
  /** The calling instance. */
  readonly from: string;
  /** The called instance. No other instance accepts these credentials, not even its successor on the same port. */
  readonly to: string;
  /** The full path, for example `/rollcall.health.v1.HealthInternalService/ProbeNodes`. */
  readonly method: string;
}

/** The result of checking credentials. */
export type ReplicaDecision =
  | { readonly kind: "valid"; readonly from: string }
  /**
   * A replica of this cluster created the credentials, but not at the current time: its clock differs, or the call
   * is a replay.
   */
  | { readonly kind: "expired" }
  | { readonly kind: "unknown" };

/** How long credentials are valid, before and after the called replica's own time, in milliseconds. */
export const REPLICA_CREDENTIALS_TTL_MS = 30_000;

const SCHEME = "rollcall-replica";
const PATTERN = /^rollcall-replica ([A-Za-z0-9_-]{1,512})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/;

/**
 * Create the `authorization` header of one call: the caller, the time, and a MAC over both, the method and the
 * called replica. The MAC's key is the cluster's secret, which never leaves the process. Someone who reads the
 * traffic can only repeat the same method at the same replica for half a minute.
 */
export function signReplicaCall(secret: Uint8Array, call: ReplicaCall, wallMs: number): string {
  const from = Buffer.from(call.from).toString("base64url");
  const time = String(Math.max(0, Math.trunc(wallMs)));
  return `${SCHEME} ${from}.${time}.${macOf(secret, call, time).toString("base64url")}`;
}

/** Check a call's `authorization` header. `wallMs` is the called replica's time. */
export function checkReplicaCall(
  secret: Uint8Array,
  authorization: string | null,
  called: Omit<ReplicaCall, "from">,
  wallMs: number,
): ReplicaDecision {
  const [, name = "", time = "", mac = ""] = authorization?.match(PATTERN) ?? [];
  if (mac === "") return { kind: "unknown" };
  const from = Buffer.from(name, "base64url").toString();
  const expected = macOf(secret, { ...called, from }, time);
  if (!timingSafeEqual(expected, Buffer.from(mac, "base64url"))) return { kind: "unknown" };
  const isNow = Math.abs(wallMs - Number(time)) <= REPLICA_CREDENTIALS_TTL_MS;
  return isNow ? { kind: "valid", from } : { kind: "expired" };
}

function macOf(secret: Uint8Array, { from, to, method }: ReplicaCall, time: string): Buffer {
  // Separate the fields by JSON, so that no field can extend into the next.
  const signed = JSON.stringify(["rollcall-replica-v1", method, from, to, time]);
  return createHmac("sha256", secret).update(signed).digest();
}
