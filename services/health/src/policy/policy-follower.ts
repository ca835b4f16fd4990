import {
  collectPolicies,
  type EventInterest,
  type HealthPolicy,
  isSamePolicies,
  type PolicyScope,
  policyOfEvent,
  withoutPolicy,
  withPolicy,
} from "@rollcall/domain";
import { Loop } from "@rollcall/process";
import { type EventRow, type ReservedStore, readHealthPolicies, tellConfiguredPolicy } from "@rollcall/store";
import type { SharedLoop } from "../replica/health-store.ts";
import type { NodePolicies } from "../replica/node-policies.ts";

/** The events that change a policy. A node's own policy is deleted with the node. */
export const POLICY_INTEREST: EventInterest = {
  types: new Set(["policy.health.set", "policy.health.deleted", "node.deleted", "node.deregistered"]),
  displaced: new Set(),
};

export interface PolicyFollowerOptions {
  readonly store: ReservedStore;
  readonly instance: string;
  /** The configured policy of this process. */
  readonly configured: HealthPolicy;
  readonly policies: NodePolicies;
  /** Called when policies change: with one node, or with null when any node may be affected. */
  readonly onChanged: (nodeId: string | null) => void;
}

/**
 * Holds the policies in memory: reads them once, then follows the log. No agent is admitted before the policies are
 * known, because a wrong policy would apply to its node.
 */
export class PolicyFollower {
  readonly #options: PolicyFollowerOptions;
  #isLoaded = false;
  #loading: Promise<void> | null = null;
  /** Events that arrive while the store is read. */
  #held: EventRow[] = [];

  constructor(options: PolicyFollowerOptions) {
    this.#options = options;
  }

  /** Resolves once the policies are known. Rejects when the store cannot be reached; the caller must retry. */
  async ready(): Promise<void> {
    if (!this.#isLoaded) await this.load();
  }

  /** Read the policies from the store. Does nothing if they are unchanged. */
  async load(): Promise<void> {
    this.#loading ??= this.#read().finally(() => {
      this.#loading = null;
      this.#held = [];
    });
    await this.#loading;
  }

  /** Apply events from the log. */
  observe(events: readonly EventRow[]): void {
    for (const event of events) {
      if (this.#loading !== null) this.#held.push(event);
      if (this.#isLoaded) this.#follow(event);
    }
  }

  async #read(): Promise<void> {
    const { store, instance, configured, policies, onChanged } = this.#options;
    if (!this.#isLoaded) await tellConfiguredPolicy(store.db, instance, configured);
    const { entries, revision } = await readHealthPolicies(store.db);
    const read = collectPolicies(entries);
    const isOther = !isSamePolicies(policies.policies, read);
    if (isOther) policies.follow(read);
    this.#isLoaded = true;
    for (const event of this.#held) if (event.revision > revision) this.#follow(event);
    if (isOther) onChanged(null);
  }

  #follow(event: EventRow): void {
    const { policies, onChanged } = this.#options;
    if (event.type === "node.deleted" || event.type === "node.deregistered") {
      // Remove a deleted node's policy with the node, because a later node with the same id is a new node.
      if (!policies.policies.nodes.has(event.subject)) return;
      const scope: PolicyScope = { kind: "node", nodeId: event.subject };
      policies.follow(withoutPolicy(policies.policies, scope));
      return;
    }
    const change = policyOfEvent(event);
    if (change === null) return;
    const { scope, entry } = change;
    policies.follow(entry === null ? withoutPolicy(policies.policies, scope) : withPolicy(policies.policies, entry));
    onChanged(scope.kind === "node" ? scope.nodeId : null);
  }
}

const COMPARE_EVERY_MS = 60_000;

/**
 * Read the policies at startup, and compare them with the store every minute, because after a restore the store's
 * history differs from the events that were followed.
 */
export function followPoliciesTask(follower: PolicyFollower, shared: SharedLoop): Loop {
  return new Loop({
    ...shared,
    name: "follow-policies",
    everyMs: COMPARE_EVERY_MS,
    turn: () => follower.load(),
  });
}
