import type { Json, NewEvent } from "../events/events.ts";
import { EVENT_CATALOGUE } from "../explain/event-catalogue.ts";
import { parseSelector } from "../labels/parse-selector.ts";
import { evaluateAddress } from "./evaluate-address.ts";
import type { Network } from "./network.ts";
import { parseIpAddress } from "./network.ts";

/** The specification of a webhook. */
export interface WebhookSpec {
  readonly url: string;
  readonly types: readonly string[];
  readonly excludeTypes: readonly string[];
  /** A label selector in the syntax of Kubernetes; empty for events about anything. */
  readonly labelSelector: string;
  readonly description: string;
  /** Whether an admin has paused deliveries. */
  readonly paused: boolean;
}

/** Why the publisher paused a webhook's deliveries. */
export type PauseReason = "DELIVERY_FAILED" | "GONE" | "SECRET_UNREADABLE";

/** The facts about a webhook that decisions depend on. */
export interface WebhookFacts {
  readonly name: string;
  readonly spec: WebhookSpec;
  /** Why the publisher paused the webhook; null if it did not. */
  readonly pauseReason: PauseReason | null;
}

/** Maximum number of webhooks. */
export const MOST_WEBHOOKS = 100;

/** A problem with a field of a specification. It has the same fields as a field violation of the API. */
export interface SpecViolation {
  readonly field: string;
  readonly description: string;
}

/** Check a specification, except its URL. Returns all problems; empty if it is valid. */
export function checkWebhookSpec({ types, excludeTypes, labelSelector }: WebhookSpec): readonly SpecViolation[] {
  const violations: SpecViolation[] = [];
  for (const [field, named] of Object.entries({ types, exclude_types: excludeTypes })) {
    for (const type of named) {
      if (Object.hasOwn(EVENT_CATALOGUE, type)) continue;
      violations.push({ field: `spec.${field}`, description: `there is no event of type ${type}; see docs/events.md` });
    }
  }
  const parsed = parseSelector(labelSelector);
  if (!parsed.ok) violations.push({ field: "spec.label_selector", description: parsed.message });
  return violations;
}

/** The parts of a parsed URL. The platform's URL class has these fields. */
export interface UrlParts {
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly hash: string;
  /** The host name. An IPv6 address is in brackets. */
  readonly hostname: string;
}

/**
 * Why events cannot be sent to a URL, for people; null if nothing is wrong. The addresses that its name resolves to are
 * checked at each connection. The URL parser has already normalized octal and decimal IPv4 addresses.
 */
export function refusedUrl({ protocol, username, password, hash, hostname }: UrlParts, allowed: readonly Network[]) {
  if (protocol !== "https:") return "it must start with https://";
  if (username !== "" || password !== "") {
    return "it must not contain a user or password: receivers check the signature";
  }
  if (hash !== "") return "it must not contain a fragment";
  const host = hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  if (parseIpAddress(host) !== null) {
    const evaluation = evaluateAddress(host, allowed);
    return evaluation.ok ? null : `${host} is ${evaluation.kind} and not in Webhooks.AllowedNetworks`;
  }
  const isLocal = /^(.*\.)?localhost\.?$/.test(host) || host === "";
  const isLoopbackAllowed = evaluateAddress("127.0.0.1", allowed).ok;
  return isLocal && !isLoopbackAllowed
    ? `${host} is this machine, and Webhooks.AllowedNetworks does not allow it`
    : null;
}

/** Who changes a webhook, and why. */
export interface WebhookCommand {
  readonly actor: string;
  readonly message: string;
}

/** The subject of events about a webhook. */
function webhookSubject(name: string): string {
  return `webhook/${name}`;
}

/**
 * Whether setting a specification would change nothing, because it is the same and the publisher has not paused the
 * webhook.
 */
export function isAlreadySet({ spec, pauseReason }: WebhookFacts, wanted: WebhookSpec): boolean {
  const isHeld = pauseReason !== null && !wanted.paused;
  return !isHeld && JSON.stringify(inOrder(spec)) === JSON.stringify(inOrder(wanted));
}

/** The event of a webhook that was created or changed; `before` is null for a new webhook. */
export function webhookSetEvent(
  { name, spec }: Pick<WebhookFacts, "name" | "spec">,
  change: { readonly before: WebhookFacts | null; readonly host: (url: string) => string; readonly isRotated: boolean },
  { actor, message }: WebhookCommand,
): NewEvent {
  const { before, host, isRotated } = change;
  const rotated = isRotated && before !== null ? { secretRotated: true } : {};
  return {
    type: "webhook.set",
    subject: webhookSubject(name),
    ...{ actor, reason: "ADMIN_SET", message },
    before: before === null ? null : shownOf(before.spec, host),
    after: { ...shownOf(spec, host), ...rotated },
  };
}

/** The event of a deleted webhook. */
export function webhookDeletedEvent(
  { name, spec }: Pick<WebhookFacts, "name" | "spec">,
  host: (url: string) => string,
  { actor, message }: WebhookCommand,
): NewEvent {
  const subject = webhookSubject(name);
  const before = shownOf(spec, host);
  return { type: "webhook.deleted", subject, actor, reason: "ADMIN_DELETED", message, before, after: null };
}

/** The event of a webhook that the publisher pauses. */
export function webhookPausedEvent(name: string, reason: PauseReason, failure: string): NewEvent {
  return {
    type: "webhook.paused",
    subject: webhookSubject(name),
    ...{ actor: "system", reason, message: failure },
    before: { state: "ACTIVE" },
    after: { state: "PAUSED" },
  };
}

/**
 * The event of a webhook that lost events, because they were deleted from the log before they were delivered. Revisions
 * are decimal strings, as in CloudEvents.
 */
export function webhookBehindEvent(name: string, lost: { readonly from: bigint; readonly through: bigint }): NewEvent {
  const before = { revision: `${lost.from - 1n}` };
  const after = { revision: `${lost.through}` };
  const message = "events of these revisions were compacted before they were delivered";
  return {
    type: "webhook.behind",
    subject: webhookSubject(name),
    ...{ actor: "system", reason: "EVENTS_COMPACTED", message },
    ...{ before, after },
  };
}

/** The event of a webhook that was reset to an earlier position in the log. */
export function webhookReplayedEvent(
  name: string,
  place: { readonly before: bigint; readonly after: bigint },
  { actor, message }: WebhookCommand,
): NewEvent {
  return {
    type: "webhook.replayed",
    subject: webhookSubject(name),
    ...{ actor, reason: "ADMIN_REPLAYED", message },
    before: { revision: `${place.before}` },
    after: { revision: `${place.after}` },
  };
}

/**
 * The part of a specification that readers of the event log can see. Only the URL's host is included, because the rest
 * can be secret.
 */
function shownOf(spec: WebhookSpec, host: (url: string) => string): { readonly [key: string]: Json } {
  const { types, excludeTypes, labelSelector, paused } = inOrder(spec);
  return { host: host(spec.url), types, excludeTypes, selector: labelSelector, paused };
}

/** Normalize a specification, so that equivalent specifications are equal. */
function inOrder({ url, types, excludeTypes, labelSelector, description, paused }: WebhookSpec): WebhookSpec {
  const sorted = (names: readonly string[]) => [...new Set(names)].sort();
  return { url, types: sorted(types), excludeTypes: sorted(excludeTypes), labelSelector, description, paused };
}
