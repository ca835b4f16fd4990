import type { JoinTokenRefusal } from "./join-token.ts";

/** A Kubernetes service account as its token names it, the token's signature, audience and times checked. */
export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
  /** The node of the pod that the token was made for; null for one that names none. */
  readonly node: string | null;
}

/** A service account's token, given in place of a join token. */
export type GivenAccount =
  | { readonly kind: "account"; readonly account: ServiceAccount }
  /** It admits no new machine; one that is known comes in without it. */
  | { readonly kind: "refused-account"; readonly refusal: JoinTokenRefusal };

/** How an account is named in settings, and after `service-account:` as the actor of events. */
export function accountName({ namespace, name }: ServiceAccount): string {
  return `${namespace}/${name}`;
}

/** Read the claims of a token; null when they are not those of a service account. */
export function serviceAccountIn(claims: Readonly<Record<string, unknown>>): ServiceAccount | null {
  const { "kubernetes.io": own } = claims;
  const namespace = textIn(own, "namespace");
  const name = textIn(memberOf(own, "serviceaccount"), "name");
  if (namespace === null || name === null) return null;
  return { namespace, name, node: textIn(memberOf(own, "node"), "name") };
}

/**
 * Judge the claims of a token that a machine joins with.
 *
 * @param admitted the accounts by which machines may join, each as NAMESPACE/NAME.
 */
export function judgeAccount(
  claims: Readonly<Record<string, unknown>>,
  admitted: readonly string[],
  nodeId: string,
): GivenAccount {
  const account = serviceAccountIn(claims);
  if (account === null) return accountTokenInvalid(nodeId, "it does not name a Kubernetes service account");
  if (admitted.includes(accountName(account))) return { kind: "account", account };
  const serviceAccount = accountName(account);
  const message =
    `node ${nodeId} cannot join by the service account ${serviceAccount}; name it in ` +
    "Join.Kubernetes.ServiceAccounts, or use a join token";
  const metadata = { node: nodeId, serviceAccount };
  return { kind: "refused-account", refusal: { reason: "SERVICE_ACCOUNT_NOT_ADMITTED", message, metadata } };
}

/** The refusal of a token that is not signed by the issuer, not for here, or over. */
export function accountTokenInvalid(nodeId: string, why: string): GivenAccount {
  const message = `the service account's token of node ${nodeId} does not admit it: ${why}`;
  const metadata = { node: nodeId, why };
  return { kind: "refused-account", refusal: { reason: "SERVICE_ACCOUNT_TOKEN_INVALID", message, metadata } };
}

/** The refusal of a token that cannot be checked now. */
export function accountIssuerUnavailable(nodeId: string, message: string): GivenAccount {
  return { kind: "refused-account", refusal: { reason: "ISSUER_UNAVAILABLE", message, metadata: { node: nodeId } } };
}

/**
 * Whether an account's token proves that its pod runs on the machine that the node is. The cluster, not the pod, wrote
 * the node's name into it.
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
