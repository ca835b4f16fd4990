import type { Due, HealthState, Thresholds, Timing } from "@rollcall/domain";
import type { HeldNode } from "../replica/held-node.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";
import { Silence, type SilenceOptions } from "../replica/silence.ts";
import type { Invariants, Observer } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import { indexOf } from "./simulation-options.ts";

/**
 * The shipped Silence, which reports to an observer when a node's judgement restarts and what it was granted, and has
 * each declaration checked against what really happened.
 */
export class ObservedSilence extends Silence {
  readonly #world: { readonly schedule: Schedule; readonly invariants: Invariants };
  readonly #observer: Observer;

  constructor(
    options: SilenceOptions,
    world: { readonly schedule: Schedule; readonly invariants: Invariants },
    observer: Observer,
  ) {
    super(options);
    this.#world = world;
    this.#observer = observer;
  }

  override track(node: HeldNode, health: HealthState, thresholds: Thresholds): Timing<HeldNode> {
    this.#observer.begin(indexOf(node.id), this.#world.schedule.nowMs);
    return super.track(node, health, thresholds);
  }

  override heard(node: HeldNode, observedMs: number): void {
    // For a node without a stream another replica reported it: see SimulatedPeers.
    if (node.stream !== null) this.#observer.heard(indexOf(node.id), this.#world.schedule.nowMs);
    super.heard(node, observedMs);
  }

  override declare(node: HeldNode, health: HealthState): void {
    this.#observer.begin(indexOf(node.id), this.#world.schedule.nowMs);
    super.declare(node, health);
  }

  override turnedAway(node: HeldNode | undefined, retryAfterMs: number): void {
    if (node !== undefined) this.#observer.heard(indexOf(node.id), this.#world.schedule.nowMs, -retryAfterMs);
    super.turnedAway(node, retryAfterMs);
  }

  override judge(nodes: HeldNodes): readonly Due<HeldNode>[] {
    const dues = super.judge(nodes);
    for (const { timing, to } of dues)
      this.#world.invariants.onDeclared(this.#observer, indexOf(timing.subject.id), to);
    return dues;
  }
}
