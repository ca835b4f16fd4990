import { createHmac, timingSafeEqual } from "node:crypto";

/** The claims in the token of a unary session. */
export interface SessionClaims {
  readonly nodeId: string;
  readonly epoch: number;
  /** The instance of the replica that opened the session. */
  readonly replicaId: string;
}

const PATTERN = /^rs1\.([A-Za-z0-9_-]{1,900})\.([A-Za-z0-9_-]{43})$/;

/** Create the token of a session. The token is invalid once the node's epoch has increased. */
export function sealSessionToken(clusterSecret: Uint8Array, claims: SessionClaims): string {
  const { nodeId, epoch, replicaId } = claims;
  const body = Buffer.from(JSON.stringify([nodeId, epoch, replicaId])).toString("base64url");
  return `rs1.${body}.${macOf(clusterSecret, body).toString("base64url")}`;
}

/** Read a token; null when this cluster did not create it. */
export function openSessionToken(clusterSecret: Uint8Array, token: string): SessionClaims | null {
  const [, body = "", mac = ""] = token.match(PATTERN) ?? [];
  if (body === "") return null;
  if (!timingSafeEqual(macOf(clusterSecret, body), Buffer.from(mac, "base64url"))) return null;
  // The MAC proves that sealSessionToken() created the token, so its claims need no checks.
  const [nodeId, epoch, replicaId] = JSON.parse(Buffer.from(body, "base64url").toString());
  return { nodeId, epoch, replicaId };
}

function macOf(clusterSecret: Uint8Array, body: string): Buffer {
  return createHmac("sha256", clusterSecret).update("rollcall-session-v1\n").update(body).digest();
}
