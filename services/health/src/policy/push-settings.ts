import { setImmediate as nextLoopTick } from "node:timers/promises";
import { type Clock, Loop, takeFrom } from "@rollcall/process";
import { keyOf, labelSetsOf, NO_LABELS, type ReservedStore } from "@rollcall/store";
import type { SharedLoop } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import { rotationSpreadMs } from "../replica/node-policies.ts";
import type { Replica } from "../replica/replica.ts";

export interface SettingsPusherOptions {
  readonly store: ReservedStore;
  readonly replica: Replica;
  readonly clock: Clock;
}

/**
 * Maximum number of nodes whose policy is resolved in one tick of the event loop. Resolving them takes
 * about a millisecond.
 */
const MAX_NODES_PER_TICK = 1_000;
/**
 * Maximum number of agents in one batch, which takes about ten milliseconds and one read of the store.
 */
const MOST_AGENTS_A_BATCH = 250;
/** Number of batches in progress: two, so that one sends while the other waits for the store. */
const LANES = 2;
/** Number of agents that one flush notifies without delay. Further agents are notified at about 5,000 a second. */
const MOST_AGENTS_AT_ONCE = 10_000;
const PACED_PAUSE_MS = 100;

/** Sends agents their settings when their policies or labels change. */
export class SettingsPusher {
  readonly #options: SettingsPusherOptions;
  /** Nodes that new policies may affect. */
  readonly #unsettled = new Set<LiveNode>();
  /** Nodes whose agents must be sent settings; their labels may have changed too. */
  readonly #changed = new Set<LiveNode>();

  constructor(options: SettingsPusherOptions) {
    this.#options = options;
  }

  /** Queue a node whose labels, or another part of its settings, have changed. */
  add(node: LiveNode): void {
    this.#changed.add(node);
  }

  /** Queue a node whose policy has changed; null when any node may be affected. */
  addUnsettled(nodeId: string | null): void {
    const { nodes } = this.#options.replica;
    if (nodeId === null) {
      for (const node of nodes.all()) this.#unsettled.add(node);
    } else {
      const node = nodes.find(nodeId);
      if (node !== undefined) this.#unsettled.add(node);
    }
  }

  /**
   * Send settings until no node is left. After an error, the remaining nodes stay queued for the next
   * call.
   */
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

  /**
   * Apply policies to all affected nodes before notifying agents, because longer thresholds must not wait
   * for notifications.
   */
  async #settle(): Promise<void> {
    const { replica } = this.#options;
    while (this.#unsettled.size > 0) {
      for (const node of takeFrom(this.#unsettled, MAX_NODES_PER_TICK)) {
        if (isHeld(replica, node) && replica.policies.settle(node)) this.#changed.add(node);
      }
      await nextLoopTick();
    }
  }

  async #push(batch: readonly LiveNode[]): Promise<void> {
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

/** Push settings when they have changed. */
export function pushSettingsTask(pusher: SettingsPusher, shared: SharedLoop): Loop {
  return new Loop({
    ...shared,
    name: "push-settings",
    turn: (signal) => pusher.flush(signal),
  });
}

function isHeld(replica: Replica, node: LiveNode): boolean {
  return replica.nodes.find(node.id) === node;
}
