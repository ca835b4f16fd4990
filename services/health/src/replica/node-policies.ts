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
import type { FailureDetector } from "./failure-detector.ts";
import type { LiveNode } from "./live-node.ts";
import type { NodeTerms, SettingsTerms, TrustedLabels } from "./node-terms.ts";
import { type PacedIntervals, Pacer } from "./pacer.ts";

export interface NodePoliciesOptions {
  /** The configured policy. */
  readonly policy: HealthPolicy;
  /** The replica's budget. */
  readonly heartbeatsPerSecond: number;
  readonly detector: FailureDetector;
}

/**
 * An agent that has never acknowledged settings is assumed to follow new settings after this many of its previous
 * intervals.
 */
const INTERVALS_WITHOUT_WORD = 2;
const WELCOME_GENERATION = 1;

/**
 * Keeps the policy, thresholds and heartbeat interval of each held node. A longer threshold applies immediately. A
 * shorter one applies after the agent has acknowledged the settings that carry it, so no node is declared unhealthy
 * because its agent still uses the previous interval. A node without a stream gets its settings when it reconnects.
 */
export class NodePolicies {
  readonly pacer: Pacer;
  readonly #configured: HealthPolicy;
  readonly #detector: FailureDetector;
  #resolver: PolicyResolver;
  /** Thresholds, keyed by policy, so that nodes with the same policy share one object. */
  readonly #thresholds = new WeakMap<ResolvedPolicy, Thresholds>();

  constructor({ policy, heartbeatsPerSecond, detector }: NodePoliciesOptions) {
    this.#configured = policy;
    this.#detector = detector;
    this.#resolver = new PolicyResolver(policy, NO_HEALTH_POLICIES);
    this.pacer = new Pacer(heartbeatsPerSecond);
  }

  /** The current policies. */
  get policies(): HealthPolicies {
    return this.#resolver.policies;
  }

  /** Replace the policies. A held node keeps its own until `settle()` is called for it. */
  follow(policies: HealthPolicies): void {
    this.#resolver = new PolicyResolver(this.#configured, policies);
  }

  /** Return the terms and thresholds for a node that this replica starts to hold. */
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
  mayAdmit(node: LiveNode | undefined): boolean {
    if (node !== undefined && node.stream !== null) return true;
    const { policy } = node?.terms.resolved ?? this.#resolver.combination(null);
    return this.pacer.mayAdmit(pacedIntervals(policy, NO_WISHES));
  }

  /** Called when a node has a new stream. The stream's Welcome carries `settings()`. */
  open(node: LiveNode, labels: TrustedLabels, wishes: Wishes): void {
    const { terms } = node;
    terms.labels = labels;
    terms.resolved = this.#resolver.resolve({ id: node.id, labels });
    terms.wishes = wishes;
    terms.generation = 0;
    terms.acknowledged = 0;
    this.#tell(node);
  }

  /** Called when a node's stream has ended. */
  close({ terms }: LiveNode): void {
    if (terms.paced !== null) this.pacer.leave(terms.paced);
    terms.paced = null;
    // Stop waiting for an acknowledgement, because the next stream carries the settings again.
    terms.awaited = null;
  }

  /**
   * Apply the current policies and labels to a node; longer thresholds apply immediately. Returns whether its agent
   * must be notified.
   */
  settle(node: LiveNode, labels: TrustedLabels = node.terms.labels): boolean {
    const { terms } = node;
    const before = terms.resolved;
    terms.labels = labels;
    terms.resolved = this.#resolver.resolve({ id: node.id, labels });
    if (isSamePolicy(before.policy, terms.resolved.policy)) return false;
    this.#relax(node);
    return node.stream !== null;
  }

  /**
   * Apply policies and labels to a node, and assign a new generation to its settings, to be sent to the agent. Returns
   * false if the node has no stream.
   */
  retell(node: LiveNode, labels: TrustedLabels): boolean {
    this.settle(node, labels);
    if (node.stream === null || node.intervals === null) return false;
    this.#tell(node);
    return true;
  }

  /** The settings for the agent of a node with a stream. */
  settings(
    { terms, intervals }: LiveNode,
    labels: readonly Label[],
    rotateKeyWithinMs: number | null = null,
  ): SettingsTerms {
    const told = intervals ?? intervalsFor(terms.resolved.policy, terms.wishes);
    const { unhealthyAfterMs } = this.#wantedThresholds(terms);
    return { intervals: told, unhealthyAfterMs, labels, generation: terms.generation, rotateKeyWithinMs };
  }

  /** Record that the agent has acknowledged settings of this generation. */
  acknowledge(node: LiveNode, generation: number): void {
    const { terms } = node;
    terms.acknowledged = Math.max(terms.acknowledged, Math.min(generation, terms.generation));
    if (terms.awaited !== null && generation >= terms.awaited.generation) this.#apply(node);
  }

  /**
   * Called for a Beat that arrives while an acknowledgement is awaited. An agent that has never acknowledged anything
   * is assumed to follow its settings after a while.
   */
  onBeat(node: LiveNode, isFirst: boolean): void {
    const { awaited, acknowledged } = node.terms;
    if (awaited === null || acknowledged > 0) return;
    // Treat the settings of the Welcome as read at the first Beat, because an agent reads the Welcome before its first
    // Beat.
    const hasRead = isFirst && awaited.generation === WELCOME_GENERATION;
    if (hasRead || this.#detector.nowMs() >= awaited.untilMs) this.#apply(node);
  }

  /** The interval that the next Ack must carry, in milliseconds; 0 when the agent already has it. */
  newPaceMs(node: LiveNode): number {
    const { terms, intervals } = node;
    if (terms.paceVersion === this.pacer.version) return 0;
    terms.paceVersion = this.pacer.version;
    if (terms.paced === null || intervals === null) return 0;
    const heartbeatMs = this.pacer.intervalMs(terms.paced);
    if (heartbeatMs === intervals.heartbeatMs) return 0;
    node.intervals = { ...intervals, heartbeatMs };
    return heartbeatMs;
  }

  #tell(node: LiveNode): void {
    const { terms } = node;
    const { policy } = terms.resolved;
    const formerMs = node.intervals?.heartbeatMs ?? policy.heartbeatIntervalMs;
    this.#pace(node);
    terms.generation += 1;
    const isShorter = this.#relax(node);
    const untilMs = this.#detector.nowMs() + formerMs * INTERVALS_WITHOUT_WORD;
    terms.awaited = isShorter ? { generation: terms.generation, untilMs } : null;
  }

  #pace(node: LiveNode): void {
    const { terms } = node;
    const { policy } = terms.resolved;
    const intervals = pacedIntervals(policy, terms.wishes);
    if (terms.paced !== null) this.pacer.leave(terms.paced);
    terms.paced = this.pacer.join(intervals);
    terms.paceVersion = this.pacer.version;
    const heartbeatMs = this.pacer.intervalMs(intervals);
    node.intervals = { ...intervalsFor(policy, terms.wishes), heartbeatMs };
  }

  /** Apply thresholds that became longer. Returns whether a threshold became shorter and has to wait. */
  #relax(node: LiveNode): boolean {
    const kept = node.timing.thresholds;
    const wanted = this.#wantedThresholds(node.terms);
    if (isSame(kept, wanted)) return false;
    const laxer = laxerThresholds(kept, wanted);
    if (isSame(laxer, wanted)) {
      this.#detector.setThresholds(node, wanted);
      return false;
    }
    if (!isSame(laxer, kept)) this.#detector.setThresholds(node, laxer);
    return true;
  }

  #apply(node: LiveNode): void {
    node.terms.awaited = null;
    this.#detector.setThresholds(node, this.#wantedThresholds(node.terms));
  }

  #wantedThresholds({ resolved }: NodeTerms): Thresholds {
    const known = this.#thresholds.get(resolved);
    if (known !== undefined) return known;
    const thresholds = policyThresholds(resolved.policy);
    this.#thresholds.set(resolved, thresholds);
    return thresholds;
  }
}

/**
 * The interval of a policy, and the longest interval that a budget can stretch it to: a third of the time to UNHEALTHY.
 */
function pacedIntervals(policy: HealthPolicy, wishes: Wishes): PacedIntervals {
  const { heartbeatMs: intervalMs } = intervalsFor(policy, wishes);
  const longestMs = longestHeartbeatMs(policyThresholds(policy));
  return { intervalMs, longestMs: Math.max(intervalMs, longestMs) };
}

function isSame(left: Thresholds, right: Thresholds): boolean {
  return left.unhealthyAfterMs === right.unhealthyAfterMs && left.unknownAfterMs === right.unknownAfterMs;
}

/**
 * The time in milliseconds over which to spread the key rotations of this many agents, because each costs the store a
 * few milliseconds.
 */
export function rotationSpreadMs(agents: number): number {
  return Math.max(0, agents - 1) * ROTATION_GAP_MS;
}

const ROTATION_GAP_MS = 10;
