import type { JoinTokenRefusal } from "./join-token.ts";

/** A Kubernetes service account, read from a token whose signature, audience and times have been checked. */
export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
  /** The node that runs the pod of the token; null if the token names no node. */
  readonly node: string | null;
}

/** A service account token that is presented instead of a join token. */
export type GivenAccount =
  | { readonly kind: "account"; readonly account: ServiceAccount }
  /** The account cannot admit a new node. A known node does not need a token. */
  | { readonly kind: "refused-account"; readonly refusal: JoinTokenRefusal };

/** The account's name, as in settings and after `service-account:` in the actor of events. */
export function accountName({ namespace, name }: ServiceAccount): string {
  return `${namespace}/${name}`;
}

/** Read the service account from a token's claims; null if they do not name one. */
export function serviceAccountIn(claims: Readonly<Record<string, unknown>>): ServiceAccount | null {
  const { "kubernetes.io": own } = claims;
  const namespace = textIn(own, "namespace");
  const name = textIn(memberOf(own, "serviceaccount"), "name");
  if (namespace === null || name === null) return null;
  return { namespace, name, node: textIn(memberOf(own, "node"), "name") };
}

/**
 * Decide whether a machine can join with a token that has these claims.
 *
 * @param admitted the accounts that machines can join with, as NAMESPACE/NAME.
 */
export function evaluateAccount(
  claims: Readonly<Record<string, unknown>>,
  admitted: readonly string[],
  nodeId: string,
): GivenAccount {
  const account = serviceAccountIn(claims);
  if (account === null) return accountTokenInvalid(nodeId, "it does not name a Kubernetes service account");
  if (admitted.includes(accountName(account))) return { kind: "account", account };
  const serviceAccount = accountName(account);
  const message =
    `node ${nodeId} cannot join with service account ${serviceAccount}; add it to ` +
    "Join.Kubernetes.ServiceAccounts, or use a join token";
  const metadata = { node: nodeId, serviceAccount };
  return { kind: "refused-account", refusal: { reason: "SERVICE_ACCOUNT_NOT_ADMITTED", message, metadata } };
}

/** The refusal of a token that is not signed by the issuer, has another audience, or has expired. */
export function accountTokenInvalid(nodeId: string, why: string): GivenAccount {
  const message = `the service account token of node ${nodeId} was refused: ${why}`;
  const metadata = { node: nodeId, why };
  return { kind: "refused-account", refusal: { reason: "SERVICE_ACCOUNT_TOKEN_INVALID", message, metadata } };
}

/** The refusal of a token that cannot be checked at the moment. */
export function accountIssuerUnavailable(nodeId: string, message: string): GivenAccount {
  return { kind: "refused-account", refusal: { reason: "ISSUER_UNAVAILABLE", message, metadata: { node: nodeId } } };
}

/**
 * Whether an account's token proves that its pod runs on this node. The node's name in the token comes from
 * Kubernetes, not from the pod.
 */
export function provesNode({ node }: ServiceAccount, nodeId: string): boolean {
  return node === nodeId;
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[key];
}

function textIn(value: unknown, key: string): string | null {
  const text = memberOf(value, key);
  return typeof text === "string" && text !== "" ? text : null;
}
