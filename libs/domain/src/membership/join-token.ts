import type { Decided } from "../decided.ts";
import type { Json, NewEvent } from "../events/events.ts";
import { matchesGlob } from "../labels/glob.ts";
import { type Refusal, refused } from "../refusal.ts";

/**
 * How to treat new nodes without a join token: admit them ("none"), admit, count and report them ("warn"), or
 * refuse them ("strict").
 */
export type JoinTokenEnforcement = "none" | "warn" | "strict";

/** A join token that a machine presents. The whole text is secret. */
export type PresentedJoinToken =
  | { readonly kind: "own"; readonly id: string }
  /** A token of another cluster, or of this cluster when it had another id. */
  | { readonly kind: "foreign"; readonly cluster: string }
  | { readonly kind: "malformed" };

/**
 * Whether a token admits machines. If several states apply, REVOKED comes before EXPIRED, and EXPIRED before
 * USED_UP.
 */
export type JoinTokenState = "ACTIVE" | "EXPIRED" | "REVOKED" | "USED_UP";

/** The facts that determine a token's state. The store's JoinToken has these fields. */
export interface JoinTokenFacts {
  readonly id: string;
  /** How many machines the token can admit; null for no limit. */
  readonly maxUses: number | null;
  readonly uses: number;
  readonly isExpired: boolean;
  /** When and by whom the token was revoked; null if it is not revoked. */
  readonly revocation: object | null;
}

/** The fields of a token that decide whether it admits a node. */
export interface AdmittingToken extends JoinTokenFacts {
  /** A glob pattern for names of nodes; empty for any name. */
  readonly nodeNamePattern: string;
}

/** Why a token does not admit a machine. */
export type JoinTokenRefusal = Refusal<
  | "JOIN_TOKEN_REQUIRED"
  | "JOIN_TOKEN_INVALID"
  | "JOIN_TOKEN_EXPIRED"
  | "JOIN_TOKEN_REVOKED"
  | "JOIN_TOKEN_USED_UP"
  | "JOIN_TOKEN_NAME_MISMATCH"
  | "JOIN_TOKEN_WRONG_CLUSTER"
  | "SERVICE_ACCOUNT_TOKEN_INVALID"
  | "SERVICE_ACCOUNT_NOT_ADMITTED"
  | "ISSUER_UNAVAILABLE"
>;

const TEXT = /^rcj_([0-9a-f]{8})_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;
const SHORT_LENGTH = 8;
const ASK = "ask an operator for another one";

/** The part of a cluster's id that its tokens contain: the first 8 characters. */
export function clusterShortId(clusterId: string): string {
  return clusterId.slice(0, SHORT_LENGTH);
}

/**
 * Format a token as `rcj_<cluster>_<id>_<secret>`. The id has 12 hexadecimal digits; the secret is 32 bytes as
 * base64url.
 */
export function joinTokenText(clusterId: string, id: string, secret: string): string {
  return `rcj_${clusterShortId(clusterId)}_${id}_${secret}`;
}

/** Parse a token. This does not check whether the token exists. */
export function parseJoinToken(text: string, clusterId: string): PresentedJoinToken {
  const [, cluster, id] = TEXT.exec(text) ?? [];
  if (cluster === undefined || id === undefined) return { kind: "malformed" };
  return cluster === clusterShortId(clusterId) ? { kind: "own", id } : { kind: "foreign", cluster };
}

export function joinTokenState(token: JoinTokenFacts): JoinTokenState {
  if (token.revocation !== null) return "REVOKED";
  if (token.isExpired) return "EXPIRED";
  return token.maxUses !== null && token.uses >= token.maxUses ? "USED_UP" : "ACTIVE";
}

/** Why an existing token does not admit a machine with this name; null if it does. */
export function joinTokenRefusal(token: AdmittingToken, nodeId: string): JoinTokenRefusal | null {
  const { id, nodeNamePattern: pattern } = token;
  const metadata = { node: nodeId, joinToken: id };
  switch (joinTokenState(token)) {
    case "REVOKED":
      return refusal("JOIN_TOKEN_REVOKED", `join token ${id} was revoked; ${ASK}`, metadata);
    case "EXPIRED":
      return refusal("JOIN_TOKEN_EXPIRED", `join token ${id} has expired; ${ASK}`, metadata);
    case "USED_UP": {
      const message = `join token ${id} has reached its maximum number of uses; ${ASK}`;
      return refusal("JOIN_TOKEN_USED_UP", message, metadata);
    }
    case "ACTIVE": {
      if (pattern === "" || matchesGlob(pattern, nodeId)) return null;
      const message =
        `join token ${id} admits only nodes whose name matches ${pattern}, not ${nodeId}; rename the node, or ` +
        `${ASK}`;
      return refusal("JOIN_TOKEN_NAME_MISMATCH", message, { ...metadata, pattern });
    }
  }
}

/**
 * Why a token does not admit a machine; null if it does.
 *
 * @param given the presented token, with the row of that id; null for a row that does not exist or whose secret is
 *   another one.
 */
export function presentedRefusal(
  given: { readonly token: PresentedJoinToken; readonly row: AdmittingToken | null },
  { nodeId, cluster }: { readonly nodeId: string; readonly cluster: string },
): JoinTokenRefusal | null {
  const { token, row } = given;
  if (token.kind === "foreign") return joinTokenOfOtherCluster(nodeId, { token: token.cluster, own: cluster });
  // Check the secret before anything else, because a machine that knows only the token's id must not find out anything
  // about the token.
  return token.kind === "malformed" || row === null ? joinTokenInvalid(nodeId) : joinTokenRefusal(row, nodeId);
}

/** The refusal of a new node that presents no token although one is required. */
export function joinTokenRequired(nodeId: string): JoinTokenRefusal {
  const message = `node ${nodeId} needs a join token to join this cluster; ask an operator for one`;
  return refusal("JOIN_TOKEN_REQUIRED", message, { node: nodeId });
}

/**
 * The refusal of a token that is not valid in this cluster: the token is malformed, unknown or deleted, or its
 * secret is wrong.
 */
export function joinTokenInvalid(nodeId: string): JoinTokenRefusal {
  // Use the same message in all cases, so that guessing does not reveal which ids exist.
  const message =
    `the join token of node ${nodeId} does not belong to this cluster; ` +
    `check that it was copied completely, or ${ASK}`;
  return refusal("JOIN_TOKEN_INVALID", message, { node: nodeId });
}

/** The refusal of a token that another cluster created. */
export function joinTokenOfOtherCluster(
  nodeId: string,
  clusters: { readonly token: string; readonly own: string },
): JoinTokenRefusal {
  const { token, own } = clusters;
  const message =
    `the join token of node ${nodeId} was created by cluster ${token}..., but this is ${own}...; check the ` +
    `address that the agent registers at, or ${ASK}`;
  const metadata = { node: nodeId, tokenCluster: token, cluster: own };
  return refusal("JOIN_TOKEN_WRONG_CLUSTER", message, metadata);
}

/** Decide to revoke a token. The effect contains who revokes the token and why. */
export function endJoinToken(
  token: JoinTokenFacts & { readonly revocation: { readonly actor: string } | null },
  { actor, message }: { readonly actor: string; readonly message: string },
): Decided<{ readonly actor: string; readonly reason: string }, "JOIN_TOKEN_ALREADY_REVOKED"> {
  const { id, revocation } = token;
  if (revocation !== null) {
    const text = `join token ${id} was already revoked by ${revocation.actor}`;
    const metadata = { joinToken: id, actor: revocation.actor };
    return refused("JOIN_TOKEN_ALREADY_REVOKED", text, metadata);
  }
  const change = { before: { state: joinTokenState(token) }, after: { state: "REVOKED" } } as const;
  const event = joinTokenEvent({ type: "join.token.revoked", tokenId: id, actor, message, ...change });
  return { ok: true, effects: [{ actor, reason: message }], events: [event] };
}

/** The event of a token that was created or revoked. */
export function joinTokenEvent(change: {
  readonly type: "join.token.created" | "join.token.revoked";
  readonly tokenId: string;
  readonly actor: string;
  readonly message: string;
  readonly before: Json | null;
  readonly after: Json;
}): NewEvent {
  const { type, tokenId, actor, message, before, after } = change;
  const reason = type === "join.token.created" ? "OPERATOR_CREATED" : "OPERATOR_REVOKED";
  return { type, subject: tokenId, actor, reason, message, before, after };
}

function refusal(
  reason: JoinTokenRefusal["reason"],
  message: string,
  metadata: Readonly<Record<string, string>>,
): JoinTokenRefusal {
  return { reason, message, metadata };
}
