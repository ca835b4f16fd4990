import {
  type HealthPolicies,
  type HealthPolicy,
  intervalsFor,
  isSamePolicy,
  type Label,
  laxerThresholds,
  longestHeartbeatMs,
  NO_HEALTH_POLICIES,
  NO_WISHES,
  PolicyResolver,
  policyThresholds,
  type ResolvedPolicy,
  type Thresholds,
  type Wishes,
} from "@rollcall/domain";
import type { HeldNode } from "../replica/held-node.ts";
import type { Silence } from "../replica/silence.ts";
import type { NodeTerms, SettingsTerms, TrustedLabels } from "./node-terms.ts";
import { type PacedIntervals, Pacer } from "./pacer.ts";

export interface NodePoliciesOptions {
  /** The configured policy. */
  readonly policy: HealthPolicy;
  /** The replica's budget. */
  readonly heartbeatsPerSecond: number;
  readonly silence: Silence;
}

/** An agent that never acknowledges settings counts as following them after so many of its former intervals. */
const INTERVALS_WITHOUT_WORD = 2;
const WELCOME_GENERATION = 1;

/**
 * The policy of each held node, its thresholds, and how often its agent beats. A longer threshold applies at once; a
 * shorter one once the agent has acknowledged the settings that carry it, so that no node is judged by an interval that
 * it was never told. A node without a stream is told when it reconnects.
 */
export class NodePolicies {
  readonly pacer: Pacer;
  readonly #configured: HealthPolicy;
  readonly #silence: Silence;
  #resolver: PolicyResolver;
  /** The same object for the same policy: there is one for each node otherwise. */
  readonly #thresholds = new WeakMap<ResolvedPolicy, Thresholds>();

  constructor({ policy, heartbeatsPerSecond, silence }: NodePoliciesOptions) {
    this.#configured = policy;
    this.#silence = silence;
    this.#resolver = new PolicyResolver(policy, NO_HEALTH_POLICIES);
    this.pacer = new Pacer(heartbeatsPerSecond);
  }

  /** The policies that are followed. */
  get policies(): HealthPolicies {
    return this.#resolver.policies;
  }

  /** Replace the policies. A held node keeps its own until `settle()` is called for it. */
  follow(policies: HealthPolicies): void {
    this.#resolver = new PolicyResolver(this.#configured, policies);
  }

  /** The terms and thresholds of a node that this replica begins to hold. */
  begin(id: string, labels: TrustedLabels): { terms: NodeTerms; thresholds: Thresholds } {
    const resolved = this.#resolver.resolve({ id, labels });
    const terms: NodeTerms = {
      labels,
      resolved,
      wishes: NO_WISHES,
      generation: 0,
      acknowledged: 0,
      awaited: null,
      paced: null,
      paceVersion: 0,
    };
    return { terms, thresholds: this.#wantedThresholds(terms) };
  }

  /** Whether another session fits into this replica's budget of heartbeats. */
  mayAdmit(node: HeldNode | undefined): boolean {
    if (node !== undefined && node.stream !== null) return true;
    const { policy } = node?.terms.resolved ?? this.#resolver.combination(null);
    return this.pacer.mayAdmit(pacedIntervals(policy, NO_WISHES));
  }

  /** A node has a new stream, whose Welcome carries `settings()`. */
  open(node: HeldNode, labels: TrustedLabels, wishes: Wishes): void {
    const { terms } = node;
    terms.labels = labels;
    terms.resolved = this.#resolver.resolve({ id: node.id, labels });
    terms.wishes = wishes;
    terms.generation = 0;
    terms.acknowledged = 0;
    this.#tell(node);
  }

  /** A node's stream is gone. */
  close({ terms }: HeldNode): void {
    if (terms.paced !== null) this.pacer.leave(terms.paced);
    terms.paced = null;
    // The next stream carries the settings again.
    terms.awaited = null;
  }

  /**
   * Apply current policies and labels to a node; longer thresholds apply at once. Returns whether its agent must be
   * told.
   */
  settle(node: HeldNode, labels: TrustedLabels = node.terms.labels): boolean {
    const { terms } = node;
    const before = terms.resolved;
    terms.labels = labels;
    terms.resolved = this.#resolver.resolve({ id: node.id, labels });
    if (isSamePolicy(before.policy, terms.resolved.policy)) return false;
    this.#relax(node);
    return node.stream !== null;
  }

  /** Settle a node and tell its agent. False without a stream. */
  retell(node: HeldNode, labels: TrustedLabels): boolean {
    this.settle(node, labels);
    if (node.stream === null || node.intervals === null) return false;
    this.#tell(node);
    return true;
  }

  /** The settings for the agent of a node with a stream. */
  settings(
    { terms, intervals }: HeldNode,
    labels: readonly Label[],
    rotateKeyWithinMs: number | null = null,
  ): SettingsTerms {
    const told = intervals ?? intervalsFor(terms.resolved.policy, terms.wishes);
    const { unhealthyAfterMs } = this.#wantedThresholds(terms);
    return { intervals: told, unhealthyAfterMs, labels, generation: terms.generation, rotateKeyWithinMs };
  }

  /** The agent acknowledges settings of this generation. */
  acknowledge(node: HeldNode, generation: number): void {
    const { terms } = node;
    terms.acknowledged = Math.max(terms.acknowledged, Math.min(generation, terms.generation));
    if (terms.awaited !== null && generation >= terms.awaited.generation) this.#apply(node);
  }

  /** A Beat arrived while an acknowledgement is awaited; its agent may be one that never acknowledges. */
  onBeat(node: HeldNode, isFirst: boolean): void {
    const { awaited, acknowledged } = node.terms;
    if (awaited === null || acknowledged > 0) return;
    // An agent reads the Welcome before its first Beat.
    const hasRead = isFirst && awaited.generation === WELCOME_GENERATION;
    if (hasRead || this.#silence.nowMs() >= awaited.untilMs) this.#apply(node);
  }

  /** The interval that the next Ack must carry, in milliseconds; 0 when the agent knows it. */
  newPaceMs(node: HeldNode): number {
    const { terms, intervals } = node;
    if (terms.paceVersion === this.pacer.version) return 0;
    terms.paceVersion = this.pacer.version;
    if (terms.paced === null || intervals === null) return 0;
    const heartbeatMs = this.pacer.intervalMs(terms.paced);
    if (heartbeatMs === intervals.heartbeatMs) return 0;
    node.intervals = { ...intervals, heartbeatMs };
    return heartbeatMs;
  }

  #tell(node: HeldNode): void {
    const { terms } = node;
    const { policy } = terms.resolved;
    const formerMs = node.intervals?.heartbeatMs ?? policy.heartbeatIntervalMs;
    this.#pace(node);
    terms.generation += 1;
    const isShorter = this.#relax(node);
    const untilMs = this.#silence.nowMs() + formerMs * INTERVALS_WITHOUT_WORD;
    terms.awaited = isShorter ? { generation: terms.generation, untilMs } : null;
  }

  #pace(node: HeldNode): void {
    const { terms } = node;
    const { policy } = terms.resolved;
    const intervals = pacedIntervals(policy, terms.wishes);
    if (terms.paced !== null) this.pacer.leave(terms.paced);
    terms.paced = this.pacer.join(intervals);
    terms.paceVersion = this.pacer.version;
    const heartbeatMs = this.pacer.intervalMs(intervals);
    node.intervals = { ...intervalsFor(policy, terms.wishes), heartbeatMs };
  }

  /** Apply thresholds that became longer. Returns whether one became shorter and must wait. */
  #relax(node: HeldNode): boolean {
    const kept = node.timing.thresholds;
    const wanted = this.#wantedThresholds(node.terms);
    if (isSame(kept, wanted)) return false;
    const laxer = laxerThresholds(kept, wanted);
    if (isSame(laxer, wanted)) {
      this.#silence.setThresholds(node, wanted);
      return false;
    }
    if (!isSame(laxer, kept)) this.#silence.setThresholds(node, laxer);
    return true;
  }

  #apply(node: HeldNode): void {
    node.terms.awaited = null;
    this.#silence.setThresholds(node, this.#wantedThresholds(node.terms));
  }

  #wantedThresholds({ resolved }: NodeTerms): Thresholds {
    const known = this.#thresholds.get(resolved);
    if (known !== undefined) return known;
    const thresholds = policyThresholds(resolved.policy);
    this.#thresholds.set(resolved, thresholds);
    return thresholds;
  }
}

/** The interval of a policy, and how far a budget may stretch it: to a third of the time to UNHEALTHY. */
function pacedIntervals(policy: HealthPolicy, wishes: Wishes): PacedIntervals {
  const { heartbeatMs: intervalMs } = intervalsFor(policy, wishes);
  const longestMs = longestHeartbeatMs(policyThresholds(policy));
  return { intervalMs, longestMs: Math.max(intervalMs, longestMs) };
}

function isSame(left: Thresholds, right: Thresholds): boolean {
  return left.unhealthyAfterMs === right.unhealthyAfterMs && left.unknownAfterMs === right.unknownAfterMs;
}

/** The time over which so many agents spread their rotations: each costs the record some milliseconds. */
export function rotationSpreadMs(agents: number): number {
  return Math.max(0, agents - 1) * ROTATION_GAP_MS;
}

const ROTATION_GAP_MS = 10;
