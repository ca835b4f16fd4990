import { matches } from "../labels/selectors.ts";
import type { GroupPolicy, HealthPolicies, PolicyOverride } from "./health-policies.ts";
import type { PolicyValue } from "./policy.ts";
import { type HealthPolicy, POLICY_FIELD_NAMES } from "./policy-fields.ts";

/** Where a field of a policy comes from. */
export type PolicySource =
  /** The configuration of the health service. */
  | { readonly kind: "configuration" }
  | { readonly kind: "default" }
  | { readonly kind: "group"; readonly name: string }
  | { readonly kind: "node"; readonly nodeId: string };

/** The effective policy of a node, and the source of each field. */
export interface ResolvedPolicy {
  readonly policy: HealthPolicy;
  readonly sources: Readonly<Record<keyof HealthPolicy, PolicySource>>;
  /**
   * All policies that apply on top of the configuration, the weakest first. Includes policies that stronger ones
   * completely override.
   */
  readonly layers: readonly PolicySource[];
}

/** The facts about a node that determine its policy. */
export interface PolicySubject {
  readonly id: string;
  /**
   * The labels from the node's join token and from operators. Labels from the node itself are left out, because
   * it must not be able to choose a more lenient policy.
   */
  readonly labels: ReadonlyMap<string, string>;
}

/**
 * Resolves the policies of nodes field by field, from the configuration, the default policy, matching groups, and
 * the node's own policy. If the same policies apply to two nodes, both get the same object.
 */
export class PolicyResolver {
  readonly policies: HealthPolicies;
  readonly #configured: HealthPolicy;
  /** The weakest first. */
  readonly #groups: readonly GroupPolicy[];
  readonly #known = new Map<string, ResolvedPolicy>();

  constructor(configured: HealthPolicy, policies: HealthPolicies) {
    this.#configured = configured;
    this.policies = policies;
    this.#groups = [...policies.groups.values()].sort(
      (left, right) => left.priority - right.priority || (left.name < right.name ? 1 : -1),
    );
  }

  /** The effective policy of a node. */
  resolve({ id, labels }: PolicySubject): ResolvedPolicy {
    const override = this.policies.nodes.get(id);
    const groups = this.#groups.filter(({ selector }) => matches(selector, labels));
    return this.#combine(groups, override === undefined ? null : { nodeId: id, override });
  }

  /** The configuration with the default policy and, if given, a group on top. */
  combination(group: GroupPolicy | null): ResolvedPolicy {
    return this.#combine(group === null ? [] : [group], null);
  }

  #combine(
    groups: readonly GroupPolicy[],
    node: { readonly nodeId: string; readonly override: PolicyOverride } | null,
  ): ResolvedPolicy {
    // Join the names with these separators, which names cannot contain, so that the key is unambiguous.
    const key = `${groups.map(({ name }) => name).join(",")}/${node?.nodeId ?? ""}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const resolved = layered(this.#configured, this.#layers(groups, node));
    this.#known.set(key, resolved);
    return resolved;
  }

  #layers(
    groups: readonly GroupPolicy[],
    node: { readonly nodeId: string; readonly override: PolicyOverride } | null,
  ): readonly Layer[] {
    const { default: defaults } = this.policies;
    const layers: Layer[] = defaults === null ? [] : [[{ kind: "default" }, defaults]];
    for (const { name, override } of groups) layers.push([{ kind: "group", name }, override]);
    if (node !== null) layers.push([{ kind: "node", nodeId: node.nodeId }, node.override]);
    return layers;
  }
}

type Layer = readonly [PolicySource, PolicyOverride];

const CONFIGURATION: PolicySource = { kind: "configuration" };

function layered(configured: HealthPolicy, layers: readonly Layer[]): ResolvedPolicy {
  const policy: Record<keyof HealthPolicy, PolicyValue> = { ...configured };
  const sources = Object.fromEntries(POLICY_FIELD_NAMES.map((field) => [field, CONFIGURATION])) as Record<
    keyof HealthPolicy,
    PolicySource
  >;
  for (const [source, override] of layers) {
    for (const field of POLICY_FIELD_NAMES) {
      const value = override[field];
      if (value === undefined) continue;
      policy[field] = value;
      sources[field] = source;
    }
  }
  // The cast is safe, because each value comes from the field of the same name.
  return { policy: policy as HealthPolicy, sources, layers: layers.map(([source]) => source) };
}
