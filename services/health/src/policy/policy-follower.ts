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
import { type ReservedStore, readHealthPolicies, type StoredEvent, tellConfiguredPolicy } from "@rollcall/store";
import type { SharedLoop } from "../record/health-record.ts";
import type { NodePolicies } from "./node-policies.ts";

/** The events that change a policy. One of a node goes with its node. */
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
  /** Called when policies change: for one node, or for any when it is null. */
  readonly onChanged: (nodeId: string | null) => void;
}

/**
 * Holds the policies in memory: read once, then followed in the log. No agent is admitted before they are known, or a
 * node would be judged by a policy that is not its own.
 */
export class PolicyFollower {
  readonly #options: PolicyFollowerOptions;
  #isLoaded = false;
  #loading: Promise<void> | null = null;
  /** Events that arrive while the record is read. */
  #held: StoredEvent[] = [];

  constructor(options: PolicyFollowerOptions) {
    this.#options = options;
  }

  /** Resolves once the policies are known. Rejects when the record cannot be reached; call it again. */
  async ready(): Promise<void> {
    if (!this.#isLoaded) await this.load();
  }

  /** Read the policies from the record. Where nothing differs, nothing changes. */
  async load(): Promise<void> {
    this.#loading ??= this.#read().finally(() => {
      this.#loading = null;
      this.#held = [];
    });
    await this.#loading;
  }

  /** Follow the log. */
  observe(events: readonly StoredEvent[]): void {
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

  #follow(event: StoredEvent): void {
    const { policies, onChanged } = this.#options;
    if (event.type === "node.deleted" || event.type === "node.deregistered") {
      // Its policy went with it; a later node of that id is another node.
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
 * Read the policies at the start, and compare them with the record every minute: a restored record has another history
 * than the one that was followed.
 */
export function followPoliciesTask(follower: PolicyFollower, shared: SharedLoop): Loop {
  return new Loop({
    ...shared,
    name: "follow-policies",
    everyMs: COMPARE_EVERY_MS,
    turn: () => follower.load(),
  });
}
