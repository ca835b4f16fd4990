import { createHmac, timingSafeEqual } from "node:crypto";

/** What the token of a unary session says. */
export interface SessionClaims {
  readonly nodeId: string;
  readonly epoch: number;
  /** The instance of the replica that opened the session. */
  readonly replicaId: string;
}

const PATTERN = /^rs1\.([A-Za-z0-9_-]{1,900})\.([A-Za-z0-9_-]{43})$/;

/** Make the token of a session. It is worth nothing once the node's epoch has moved on. */
export function sealSessionToken(clusterSecret: Uint8Array, claims: SessionClaims): string {
  const { nodeId, epoch, replicaId } = claims;
  const body = Buffer.from(JSON.stringify([nodeId, epoch, replicaId])).toString("base64url");
  return `rs1.${body}.${macOf(clusterSecret, body).toString("base64url")}`;
}

/** Read a token; null when it was not made by this cluster. */
export function openSessionToken(clusterSecret: Uint8Array, token: string): SessionClaims | null {
  const [, body = "", mac = ""] = token.match(PATTERN) ?? [];
  if (body === "") return null;
  if (!timingSafeEqual(macOf(clusterSecret, body), Buffer.from(mac, "base64url"))) return null;
  // Its MAC says that it was written by the function above.
  const [nodeId, epoch, replicaId] = JSON.parse(Buffer.from(body, "base64url").toString());
  return { nodeId, epoch, replicaId };
}

function macOf(clusterSecret: Uint8Array, body: string): Buffer {
  return createHmac("sha256", clusterSecret).update("rollcall-session-v1\n").update(body).digest();
}
