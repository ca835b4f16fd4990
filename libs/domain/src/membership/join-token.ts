import type { Decided } from "../decided.ts";
import type { Json, NewEvent } from "../events/events.ts";
import { matchesGlob } from "../labels/glob.ts";
import { type Refusal, refused } from "../refusal.ts";

/** How new nodes without a join token are treated: like all others, counted and named, or refused. */
export type JoinTokenEnforcement = "none" | "warn" | "strict";

/** The text of a join token as a machine gives it. Its secret is the whole of it. */
export type PresentedJoinToken =
  | { readonly kind: "own"; readonly id: string }
  /** Made by another cluster, or by this one under another id. */
  | { readonly kind: "foreign"; readonly cluster: string }
  | { readonly kind: "malformed" };

/** Whether a token lets machines in; of several that hold, the first of REVOKED, EXPIRED and USED_UP. */
export type JoinTokenState = "ACTIVE" | "EXPIRED" | "REVOKED" | "USED_UP";

/** What a token's state follows from. The store's JoinToken is one. */
export interface JoinTokenFacts {
  readonly id: string;
  /** Null for any number. */
  readonly maxUses: number | null;
  readonly uses: number;
  readonly isExpired: boolean;
  /** Null for a token that is not revoked. */
  readonly revocation: object | null;
}

/** A token as far as it admits. */
export interface AdmittingToken extends JoinTokenFacts {
  /** A glob; empty for any name. */
  readonly nodeNamePattern: string;
}

/** Why a token does not let a machine in. */
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

/** How a cluster is named in the texts of its tokens: the first 8 characters of its id. */
export function clusterShortId(clusterId: string): string {
  return clusterId.slice(0, SHORT_LENGTH);
}

/**
 * Write the text of a token: `rcj_<cluster>_<id>_<secret>`, with an id of 12 hexadecimal digits and 32 bytes as
 * base64url.
 */
export function joinTokenText(clusterId: string, id: string, secret: string): string {
  return `rcj_${clusterShortId(clusterId)}_${id}_${secret}`;
}

/** Read the text of a token. Whether it is one is for the record to say. */
export function parseJoinToken(text: string, clusterId: string): PresentedJoinToken {
  const [, cluster, id] = TEXT.exec(text) ?? [];
  if (cluster === undefined || id === undefined) return { kind: "malformed" };
  return cluster === clusterShortId(clusterId) ? { kind: "own", id } : { kind: "foreign", cluster };
}

/** Whether a token lets machines in. */
export function joinTokenState(token: JoinTokenFacts): JoinTokenState {
  if (token.revocation !== null) return "REVOKED";
  if (token.isExpired) return "EXPIRED";
  return token.maxUses !== null && token.uses >= token.maxUses ? "USED_UP" : "ACTIVE";
}

/** Why a token of the record does not let a machine of this name in; null when it does. */
export function joinTokenRefusal(token: AdmittingToken, nodeId: string): JoinTokenRefusal | null {
  const { id, nodeNamePattern: pattern } = token;
  const metadata = { node: nodeId, joinToken: id };
  switch (joinTokenState(token)) {
    case "REVOKED":
      return refusal("JOIN_TOKEN_REVOKED", `join token ${id} was revoked; ${ASK}`, metadata);
    case "EXPIRED":
      return refusal("JOIN_TOKEN_EXPIRED", `join token ${id} has expired; ${ASK}`, metadata);
    case "USED_UP": {
      const message = `join token ${id} has admitted as many machines as it may; ${ASK}`;
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

/** The refusal of a new node without a token where one is required. */
export function joinTokenRequired(nodeId: string): JoinTokenRefusal {
  const message = `node ${nodeId} needs a join token to join this cluster; ask an operator for one`;
  return refusal("JOIN_TOKEN_REQUIRED", message, { node: nodeId });
}

/**
 * The refusal of a token that does not belong to this cluster: malformed, unknown, forgotten, or with another secret.
 */
export function joinTokenInvalid(nodeId: string): JoinTokenRefusal {
  // One answer for all of them: a caller that guesses must not learn which ids exist.
  const message =
    `the join token of node ${nodeId} does not belong to this cluster; ` + `check that it was copied whole, or ${ASK}`;
  return refusal("JOIN_TOKEN_INVALID", message, { node: nodeId });
}

/** The refusal of a token that another cluster made. */
export function joinTokenOfOtherCluster(
  nodeId: string,
  clusters: { readonly token: string; readonly own: string },
): JoinTokenRefusal {
  const { token, own } = clusters;
  const message =
    `the join token of node ${nodeId} was made by the cluster ${token}..., and this is ${own}...; check the ` +
    `address that the agent registers at, or ${ASK}`;
  const metadata = { node: nodeId, tokenCluster: token, cluster: own };
  return refusal("JOIN_TOKEN_WRONG_CLUSTER", message, metadata);
}

/** Decide to end a token; the effect is the revocation itself. */
export function endJoinToken(
  token: JoinTokenFacts & { readonly revocation: { readonly actor: string } | null },
  { actor, message }: { readonly actor: string; readonly message: string },
): Decided<{ readonly actor: string; readonly reason: string }, "JOIN_TOKEN_ALREADY_REVOKED"> {
  const { id, revocation } = token;
  if (revocation !== null) {
    const text = `join token ${id} was revoked already, by ${revocation.actor}`;
    const metadata = { joinToken: id, actor: revocation.actor };
    return refused("JOIN_TOKEN_ALREADY_REVOKED", text, metadata);
  }
  const change = { before: { state: joinTokenState(token) }, after: { state: "REVOKED" } } as const;
  const event = joinTokenEvent({ type: "join.token.revoked", tokenId: id, actor, message, ...change });
  return { ok: true, effects: [{ actor, reason: message }], events: [event] };
}

/** The event of a token made or revoked. */
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
