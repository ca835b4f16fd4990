import {
  BRAKE_CLUSTER,
  type BrakeSums,
  brakeGroupName,
  countedAs,
  type GroupSum,
  MOST_BRAKE_GROUPS,
} from "@rollcall/domain";
import type { FailureDetector } from "../replica/failure-detector.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { LiveNodes } from "../replica/live-nodes.ts";

/** The nodes to count, and the observed time that their silence is measured in. */
interface CountedReplica {
  readonly nodes: Pick<LiveNodes, "all">;
  readonly detector: Pick<FailureDetector, "nowMs">;
}

interface Count {
  readonly name: string;
  healthy: number;
  silent: number;
}

/**
 * Counts the HEALTHY nodes of this replica for the brake and, among them, those that countedAs() considers silent.
 * Makes one pass over the held nodes per renewal of the lease.
 */
export class BrakeCounter {
  readonly #replica: CountedReplica;
  readonly #label: string;
  /** Counts, keyed by value of the label. */
  readonly #groups = new Map<string, Count>();
  #sequence = 0;

  /** @param options `label` names the groups; only values set by operators and join tokens count. */
  constructor({ replica, label }: { readonly replica: CountedReplica; readonly label: string }) {
    this.#replica = replica;
    this.#label = label;
  }

  /** The brake group of a node: "" when it lacks the label or there are too many groups. */
  groupOf({ terms }: LiveNode): string {
    const value = terms.labels.get(this.#label);
    return value === undefined ? "" : (this.#countOf(value)?.name ?? "");
  }

  /** Count all held nodes now. */
  count(): BrakeSums {
    const nowMs = this.#replica.detector.nowMs();
    const cluster: Count = { name: BRAKE_CLUSTER, healthy: 0, silent: 0 };
    // Remove groups without healthy nodes in the last count, to make room for others.
    for (const [value, { healthy }] of this.#groups) if (healthy === 0) this.#groups.delete(value);
    for (const count of this.#groups.values()) {
      count.healthy = 0;
      count.silent = 0;
    }
    for (const node of this.#replica.nodes.all()) {
      const counted = countedAs(node, node.timing, nowMs);
      if (counted === null) continue;
      const isSilent = counted === "silent";
      add(cluster, isSilent);
      const value = node.terms.labels.get(this.#label);
      const group = value === undefined ? undefined : this.#countOf(value);
      if (group !== undefined) add(group, isSilent);
    }
    this.#sequence += 1;
    const groups = new Map<string, GroupSum>();
    for (const { name, healthy, silent } of [cluster, ...this.#groups.values()])
      if (healthy > 0) groups.set(name, { healthy, silent });
    return { sequence: this.#sequence, groups };
  }

  #countOf(value: string): Count | undefined {
    const known = this.#groups.get(value);
    if (known !== undefined || this.#groups.size >= MOST_BRAKE_GROUPS) return known;
    const count = { name: brakeGroupName(this.#label, value), healthy: 0, silent: 0 };
    this.#groups.set(value, count);
    return count;
  }
}

function add(count: Count, isSilent: boolean): void {
  count.healthy += 1;
  if (isSilent) count.silent += 1;
}
