import {
  BRAKE_CLUSTER,
  type BrakeSums,
  brakeGroupName,
  countedAs,
  type GroupSum,
  MOST_BRAKE_GROUPS,
} from "@rollcall/domain";
import type { HeldNode } from "../replica/held-node.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";
import type { Silence } from "../replica/silence.ts";

/** The nodes that are counted, and the time by which they are silent. */
interface CountedReplica {
  readonly nodes: Pick<HeldNodes, "all">;
  readonly silence: Pick<Silence, "nowMs">;
}

interface Count {
  readonly name: string;
  healthy: number;
  silent: number;
}

/**
 * Counts for the brake: nodes that this replica judges HEALTHY, and those of them that are nearly lost, by countedAs().
 * One pass over the held nodes at each renewal
 * of the lease.
 */
export class BrakeCounter {
  readonly #replica: CountedReplica;
  readonly #label: string;
  /** By value of the label. */
  readonly #groups = new Map<string, Count>();
  #sequence = 0;

  /** @param options `label` names the groups; only values of operators and join tokens count. */
  constructor({ replica, label }: { readonly replica: CountedReplica; readonly label: string }) {
    this.#replica = replica;
    this.#label = label;
  }

  /** The group of a node: "" without the label, or when there are too many groups. */
  groupOf({ terms }: HeldNode): string {
    const value = terms.labels.get(this.#label);
    return value === undefined ? "" : (this.#countOf(value)?.name ?? "");
  }

  /** Count once. */
  count(): BrakeSums {
    const nowMs = this.#replica.silence.nowMs();
    const cluster: Count = { name: BRAKE_CLUSTER, healthy: 0, silent: 0 };
    // Groups that had no node last time make room for others.
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
