import { createHmac, timingSafeEqual } from "node:crypto";

/** One call of a replica to another one. */
export interface ReplicaCall {
  /** The instance that calls. */
  readonly from: string;
  /** The instance that is called. No other takes these credentials, not even its successor on the same port. */
  readonly to: string;
  /** The full path, for example `/rollcall.health.v1.HealthInternalService/ProbeNodes`. */
  readonly method: string;
}

/** What credentials are worth. */
export type ReplicaVerdict =
  | { readonly kind: "valid"; readonly from: string }
  /** Made by a replica of this cluster, at another time: its clock differs, or the call is a replay. */
  | { readonly kind: "expired" }
  | { readonly kind: "unknown" };

/** For how long credentials are good, before and after the called replica's own time. */
export const REPLICA_CREDENTIALS_TTL_MS = 30_000;

const SCHEME = "rollcall-replica";
const PATTERN = /^rollcall-replica ([A-Za-z0-9_-]{1,512})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/;

/**
 * Make the `authorization` header of one call: the caller, the time, and a MAC of both with the method and the called
 * replica under the cluster's secret, which never leaves its process. A reader of the wire can repeat this
 * method at this replica for half a minute, and nothing else.
 */
export function signReplicaCall(secret: Uint8Array, call: ReplicaCall, wallMs: number): string {
  const from = Buffer.from(call.from).toString("base64url");
  const time = String(Math.max(0, Math.trunc(wallMs)));
  return `${SCHEME} ${from}.${time}.${macOf(secret, call, time).toString("base64url")}`;
}

/** Check the `authorization` header of a call. `wallMs` is the called replica's time. */
export function checkReplicaCall(
  secret: Uint8Array,
  authorization: string | null,
  called: Omit<ReplicaCall, "from">,
  wallMs: number,
): ReplicaVerdict {
  const [, name = "", time = "", mac = ""] = authorization?.match(PATTERN) ?? [];
  if (mac === "") return { kind: "unknown" };
  const from = Buffer.from(name, "base64url").toString();
  const expected = macOf(secret, { ...called, from }, time);
  if (!timingSafeEqual(expected, Buffer.from(mac, "base64url"))) return { kind: "unknown" };
  const isNow = Math.abs(wallMs - Number(time)) <= REPLICA_CREDENTIALS_TTL_MS;
  return isNow ? { kind: "valid", from } : { kind: "expired" };
}

function macOf(secret: Uint8Array, { from, to, method }: ReplicaCall, time: string): Buffer {
  // As JSON, so that no part can reach into the next one.
  const signed = JSON.stringify(["rollcall-replica-v1", method, from, to, time]);
  return createHmac("sha256", secret).update(signed).digest();
}
