import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, Loop, takeFrom } from "@rollcall/process";
import { keyOf, labelSetsOf, NO_LABELS, type ReservedStore } from "@rollcall/store";
import type { SharedLoop } from "../record/health-record.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import { rotationSpreadMs } from "./node-policies.ts";

export interface SettingsPusherOptions {
  readonly store: ReservedStore;
  readonly replica: Replica;
  readonly clock: Clock;
}

/** Nodes whose policy is resolved in one turn of the event loop: about a millisecond. */
const MOST_NODES_A_TURN = 1_000;
/** Agents told in one batch: some ten milliseconds, and one read of the record. */
const MOST_AGENTS_A_BATCH = 250;
/** Two, so that one sends while the other waits for the record. */
const LANES = 2;
/** After so many at once, the rest are paced at some 5,000 a second. */
const MOST_AGENTS_AT_ONCE = 10_000;
const PACED_PAUSE_MS = 100;

/** Sends agents their settings when their policies or labels change. */
export class SettingsPusher {
  readonly #options: SettingsPusherOptions;
  /** Nodes to which other policies may apply. */
  readonly #unsettled = new Set<HeldNode>();
  /** Nodes whose agents must be told; their labels may have changed too. */
  readonly #changed = new Set<HeldNode>();

  constructor(options: SettingsPusherOptions) {
    this.#options = options;
  }

  /** The labels of a node, or another part of its settings, changed. */
  add(node: HeldNode): void {
    this.#changed.add(node);
  }

  /** Policies changed for a node, or for any when it is null. */
  addUnsettled(nodeId: string | null): void {
    const { nodes } = this.#options.replica;
    if (nodeId === null) {
      for (const node of nodes.all()) this.#unsettled.add(node);
    } else {
      const node = nodes.find(nodeId);
      if (node !== undefined) this.#unsettled.add(node);
    }
  }

  /** Send until none is left. Call it again after an error: nothing is lost. */
  async flush(signal: AbortSignal): Promise<void> {
    const told = { agents: 0 };
    const lanes = Array.from({ length: LANES }, () => this.#flushLane(told, signal));
    const failed = (await Promise.allSettled(lanes)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
  }

  async #flushLane(told: { agents: number }, signal: AbortSignal): Promise<void> {
    while (this.#unsettled.size + this.#changed.size > 0) {
      await this.#settle();
      if (told.agents >= MOST_AGENTS_AT_ONCE) {
        await this.#options.clock.sleep(PACED_PAUSE_MS, signal);
      }
      const batch = takeFrom(this.#changed, MOST_AGENTS_A_BATCH);
      told.agents += batch.length;
      if (batch.length > 0) await this.#push(batch);
    }
  }

  /** Longer thresholds must not wait until agents are told. */
  async #settle(): Promise<void> {
    const { replica } = this.#options;
    while (this.#unsettled.size > 0) {
      for (const node of takeFrom(this.#unsettled, MOST_NODES_A_TURN)) {
        if (isHeld(replica, node) && replica.policies.settle(node)) this.#changed.add(node);
      }
      await nextTurn();
    }
  }

  async #push(batch: readonly HeldNode[]): Promise<void> {
    const { store, replica } = this.#options;
    const ids = batch.map(({ id }) => id);
    const [labels, keys] = await Promise.all([labelSetsOf(store.db, ids), keyOf(store.db, ids)]).catch(
      (error: unknown) => {
        for (const node of batch) this.#changed.add(node);
        throw error;
      },
    );
    const withinMs = rotationSpreadMs(batch.length + this.#changed.size);
    for (const node of batch) {
      const { effective, trusted } = labels.get(node.id) ?? NO_LABELS;
      if (!isHeld(replica, node) || !replica.policies.retell(node, trusted)) continue;
      const isRequired = keys.get(node.id)?.isRotationRequired === true;
      node.stream?.sendSettings(replica.policies.settings(node, effective, isRequired ? withinMs : null));
    }
  }
}

/** Push settings when some have changed. */
export function pushSettingsTask(pusher: SettingsPusher, shared: SharedLoop): Loop {
  return new Loop({
    ...shared,
    name: "push-settings",
    turn: (signal) => pusher.flush(signal),
  });
}

function isHeld(replica: Replica, node: HeldNode): boolean {
  return replica.nodes.find(node.id) === node;
}
