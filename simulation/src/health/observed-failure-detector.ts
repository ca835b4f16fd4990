import type { Due, HealthState, Thresholds, Timing } from "@rollcall/domain";
import { FailureDetector, type FailureDetectorOptions, type LiveNode, type LiveNodes } from "@rollcall/health/parts";
import type { Invariants, Observer } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import { indexOf } from "./simulation-options.ts";

/**
 * The shipped FailureDetector. It also reports signs of life and grace periods to an observer, and checks each
 * declaration against what really happened.
 */
export class ObservedFailureDetector extends FailureDetector {
  readonly #world: { readonly schedule: Schedule; readonly invariants: Invariants };
  readonly #observer: Observer;

  constructor(
    options: FailureDetectorOptions,
    world: { readonly schedule: Schedule; readonly invariants: Invariants },
    observer: Observer,
  ) {
    super(options);
    this.#world = world;
    this.#observer = observer;
  }

  override track(node: LiveNode, health: HealthState, thresholds: Thresholds): Timing<LiveNode> {
    this.#observer.begin(indexOf(node.id), this.#world.schedule.nowMs);
    return super.track(node, health, thresholds);
  }

  override heard(node: LiveNode, observedMs: number): void {
    // Skip a node without a stream, because its contact was with another replica, and SimulatedPeers reports
    // it.
    if (node.stream !== null) this.#observer.heard(indexOf(node.id), this.#world.schedule.nowMs);
    super.heard(node, observedMs);
  }

  override declare(node: LiveNode, health: HealthState): void {
    this.#observer.begin(indexOf(node.id), this.#world.schedule.nowMs);
    super.declare(node, health);
  }

  override turnedAway(node: LiveNode | undefined, retryAfterMs: number): void {
    if (node !== undefined) this.#observer.heard(indexOf(node.id), this.#world.schedule.nowMs, -retryAfterMs);
    super.turnedAway(node, retryAfterMs);
  }

  override evaluate(nodes: LiveNodes): readonly Due<LiveNode>[] {
    const dues = super.evaluate(nodes);
    for (const { timing, to } of dues)
      this.#world.invariants.onDeclared(this.#observer, indexOf(timing.subject.id), to);
    return dues;
  }
}
