import { EVENT_CATALOGUE } from "../events/event-catalogue.ts";
import type { Json, NewEvent } from "../events/events.ts";
import { parseSelector } from "../labels/parse-selector.ts";
import { judgeAddress } from "./judge-address.ts";
import type { Network } from "./network.ts";
import { parseIpAddress } from "./network.ts";

/** What a webhook is to do. */
export interface WebhookSpec {
  readonly url: string;
  readonly types: readonly string[];
  readonly excludeTypes: readonly string[];
  /** In Kubernetes' syntax; empty for events about anything. */
  readonly labelSelector: string;
  readonly description: string;
  /** Whether an admin holds its deliveries. */
  readonly paused: boolean;
}

/** Why the publisher holds the deliveries of a webhook. */
export type PauseReason = "DELIVERY_FAILED" | "GONE" | "SECRET_UNREADABLE";

/** A webhook as far as it is decided about. */
export interface WebhookFacts {
  readonly name: string;
  readonly spec: WebhookSpec;
  /** Null while the publisher does not hold its deliveries. */
  readonly pauseReason: PauseReason | null;
}

/** How many webhooks there can be. */
export const MOST_WEBHOOKS = 100;

/** What is wrong with a field of a specification; its fields are those of a field violation of the API. */
export interface SpecViolation {
  readonly field: string;
  readonly description: string;
}

/** What is wrong with a specification apart from its URL; empty when nothing is. */
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

/** The parts of a URL that is read already; the URL of a platform is one. */
export interface UrlParts {
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly hash: string;
  /** An IPv6 address in brackets. */
  readonly hostname: string;
}

/**
 * Why events may not be posted to a URL, for people; null when nothing forbids it so far: to which addresses its name
 * leads is judged whenever it is connected to. Other forms of IPv4 addresses, octal or decimal, are written as usual by
 * then: reading a URL does that.
 */
export function refusedUrl({ protocol, username, password, hash, hostname }: UrlParts, allowed: readonly Network[]) {
  if (protocol !== "https:") return "it must begin with https://";
  if (username !== "" || password !== "") return "it must have no user and no password: receivers check the signature";
  if (hash !== "") return "it must have no fragment";
  const host = hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  if (parseIpAddress(host) !== null) {
    const judgement = judgeAddress(host, allowed);
    return judgement.ok ? null : `${host} is ${judgement.kind}: Webhooks.AllowedNetworks does not have it`;
  }
  const isLocal = /^(.*\.)?localhost\.?$/.test(host) || host === "";
  const isLoopbackAllowed = judgeAddress("127.0.0.1", allowed).ok;
  return isLocal && !isLoopbackAllowed ? `${host} is this machine: Webhooks.AllowedNetworks does not have it` : null;
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

/** Whether a specification changes nothing of a webhook: the same, and not paused by the publisher. */
export function isAlreadySet({ spec, pauseReason }: WebhookFacts, wanted: WebhookSpec): boolean {
  const isHeld = pauseReason !== null && !wanted.paused;
  return !isHeld && JSON.stringify(inOrder(spec)) === JSON.stringify(inOrder(wanted));
}

/** The event of a webhook made or changed; `before` is null for a new one. */
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

/** The event of a webhook deleted. */
export function webhookDeletedEvent(
  { name, spec }: Pick<WebhookFacts, "name" | "spec">,
  host: (url: string) => string,
  { actor, message }: WebhookCommand,
): NewEvent {
  const subject = webhookSubject(name);
  const before = shownOf(spec, host);
  return { type: "webhook.deleted", subject, actor, reason: "ADMIN_DELETED", message, before, after: null };
}

/** The event of deliveries that the publisher holds from now on. */
export function webhookPausedEvent(name: string, reason: PauseReason, failure: string): NewEvent {
  return {
    type: "webhook.paused",
    subject: webhookSubject(name),
    ...{ actor: "system", reason, message: failure },
    before: { state: "ACTIVE" },
    after: { state: "PAUSED" },
  };
}

/** The event of a webhook that fell behind the log's retention; revisions are decimal text, as in CloudEvents. */
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

/** The event of a webhook that was set back in the log. */
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

/** What viewers of the log may see: of the URL its host alone, since the rest can be a secret. */
function shownOf(spec: WebhookSpec, host: (url: string) => string): { readonly [key: string]: Json } {
  const { types, excludeTypes, labelSelector, paused } = inOrder(spec);
  return { host: host(spec.url), types, excludeTypes, selector: labelSelector, paused };
}

/** One form of all specifications that mean the same. */
function inOrder({ url, types, excludeTypes, labelSelector, description, paused }: WebhookSpec): WebhookSpec {
  const sorted = (names: readonly string[]) => [...new Set(names)].sort();
  return { url, types: sorted(types), excludeTypes: sorted(excludeTypes), labelSelector, description, paused };
}
