/** The tier that a label comes from. A later tier overrides an earlier one. */
export type LabelTier = "agent" | "token" | "operator";

/** One label from one tier. */
export interface Label {
  readonly key: string;
  readonly value: string;
  readonly tier: LabelTier;
}

/** An effective label, with the values that it overrides. */
export interface EffectiveLabel extends Label {
  /** The overridden values. Values of later tiers come first. */
  readonly overrides: readonly { readonly tier: LabelTier; readonly value: string }[];
}

/** A label that a node is not allowed to send, and why. It has the same fields as a field violation of the API. */
export interface LabelViolation {
  /** For example `labels["zone"]`. */
  readonly field: string;
  readonly description: string;
}

/** Maximum number of labels that a node can give itself. */
export const MAX_AGENT_LABELS = 64;

/** Maximum number of labels that operators can give a node. */
export const MAX_OPERATOR_LABELS = 64;

/** Keys with this prefix are reserved for the control plane. */
export const RESERVED_LABEL_PREFIX = "rollcall.io/";

/** The group of a node, set by its join token. This is the only reserved key that operators can set. */
export const GROUP_LABEL = "rollcall.io/group";

const TIER_RANKS: Readonly<Record<LabelTier, number>> = { agent: 0, token: 1, operator: 2 };
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_DOMAIN_LENGTH = 253;
const SHOWN_KEY_LENGTH = 80;

/** Merge labels of all tiers into one value per key, sorted by key. */
export function effectiveLabels(labels: readonly Label[]): readonly EffectiveLabel[] {
  const strongestFirst = labels.toSorted(
    (left, right) => compareText(left.key, right.key) || TIER_RANKS[right.tier] - TIER_RANKS[left.tier],
  );
  const effective: (Label & { overrides: { tier: LabelTier; value: string }[] })[] = [];
  for (const { key, value, tier } of strongestFirst) {
    const last = effective.at(-1);
    if (last?.key === key) last.overrides.push({ tier, value });
    else effective.push({ key, value, tier, overrides: [] });
  }
  return effective;
}

/**
 * Whether a string is a label key as in Kubernetes: `name` or `dns.domain/name`. The name has at most 63 characters.
 */
export function isLabelKey(text: string): boolean {
  const slash = text.indexOf("/");
  if (slash < 0) return NAME.test(text);
  const domain = text.slice(0, slash);
  if (domain.length > MAX_DOMAIN_LENGTH || !NAME.test(text.slice(slash + 1))) return false;
  return domain.split(".").every((part) => DNS_LABEL.test(part));
}

/** Whether a string is a label value as in Kubernetes: empty, or a name of at most 63 characters. */
export function isLabelValue(text: string): boolean {
  return text === "" || NAME.test(text);
}

/** Check the labels that a node gives itself. Returns all violations; empty if there are none. */
export function checkAgentLabels(labels: Readonly<Record<string, string>>): LabelViolation[] {
  const violations: LabelViolation[] = [];
  const entries = Object.entries(labels);
  if (entries.length > MAX_AGENT_LABELS) {
    const description = `a node can have at most ${MAX_AGENT_LABELS} labels, not ${entries.length}`;
    // Do not check each label, so that the response does not grow with the request.
    return [{ field: "labels", description }];
  }
  for (const [key, value] of entries) {
    const field = fieldOf("labels", key);
    violations.push(...keyViolations(field, key));
    if (!isLabelValue(value)) violations.push({ field, description: VALUE_RULE });
  }
  return violations;
}

/** A change to the labels that operators give a node. */
export interface LabelChange {
  readonly set: Readonly<Record<string, string>>;
  /** Keys to remove; unknown keys are ignored. */
  readonly remove: readonly string[];
}

/** Check a change to operators' labels. Returns all violations; empty if there are none. */
export function checkLabelChange({ set, remove }: LabelChange): LabelViolation[] {
  const violations: LabelViolation[] = [];
  const entries = Object.entries(set);
  if (entries.length === 0 && remove.length === 0) {
    return [{ field: "set", description: "name at least one label to set or to remove" }];
  }
  for (const [key, value] of entries) {
    const field = fieldOf("set", key);
    if (key !== GROUP_LABEL) violations.push(...keyViolations(field, key));
    if (!isLabelValue(value)) violations.push({ field, description: VALUE_RULE });
  }
  for (const [index, key] of remove.entries()) {
    const field = `remove[${index}]`;
    if (key !== GROUP_LABEL) violations.push(...keyViolations(field, key));
    if (Object.hasOwn(set, key)) {
      violations.push({ field, description: "this change also sets the same key" });
    }
  }
  return violations;
}

/** A node's operator labels after a change. */
export function changeOperatorLabels(labels: readonly Label[], { set, remove }: LabelChange): readonly Label[] {
  const changed = new Set([...Object.keys(set), ...remove]);
  const kept = labels.filter(({ tier, key }) => tier === "operator" && !changed.has(key));
  const added = Object.entries(set).map(([key, value]): Label => ({ key, value, tier: "operator" }));
  return [...kept, ...added].toSorted((left, right) => compareText(left.key, right.key));
}

/** The effective labels that a change cannot remove, because they do not come from operators. */
export function labelsOfOthers(labels: readonly Label[], { remove }: Pick<LabelChange, "remove">): readonly Label[] {
  return effectiveLabels(labels).filter(({ key, tier }) => tier !== "operator" && remove.includes(key));
}

function fieldOf(map: string, key: string): string {
  return `${map}[${JSON.stringify(key.slice(0, SHOWN_KEY_LENGTH))}]`;
}

function keyViolations(field: string, key: string): LabelViolation[] {
  if (key.startsWith(RESERVED_LABEL_PREFIX)) {
    const description = `keys with the prefix ${RESERVED_LABEL_PREFIX} are reserved for the control plane`;
    return [{ field, description }];
  }
  return isLabelKey(key) ? [] : [{ field, description: KEY_RULE }];
}

const KEY_RULE =
  "a key is 1-63 characters of [A-Za-z0-9._-], the first and the last a letter or digit, after an optional DNS " +
  "domain and /";
const VALUE_RULE = "a value is empty or 1-63 characters of [A-Za-z0-9._-], the first and the last a letter or digit";

/** Compare by code units, so that the order does not depend on the locale. */
function compareText(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
