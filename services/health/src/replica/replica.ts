import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import {
  connectionAfter,
  type Due,
  effectOf,
  healthAfter,
  isEventType,
  replicaActor,
  type Wishes,
} from "@rollcall/domain";
import type { EventRow, OwnedSession } from "@rollcall/store";
import { SamplePages } from "../samples/sample-pages.ts";
import { SampleRing } from "../samples/sample-ring.ts";
import { applyEffect, type CutReason, type EffectHooks } from "./apply-effect.ts";
import { FailureDetector, type FailureDetectorOptions } from "./failure-detector.ts";
import { FailureEvidence } from "./failure-evidence.ts";
import { type Farewell, movedOn, type Random, shuttingDown, stale, superseded } from "./farewell.ts";
import { takeGpuSample } from "./gpu-samples.ts";
import type { SuccessfulOpening } from "./health-store.ts";
import { createLiveNode, type LiveNode, type NodeStream, statesAfterGoodbye } from "./live-node.ts";
import { LiveNodes } from "./live-nodes.ts";
import { NodePolicies, type NodePoliciesOptions } from "./node-policies.ts";
import type { TrustedLabels } from "./node-terms.ts";
import { WatchedNodes } from "./watched-nodes.ts";

export interface ReplicaOptions extends FailureDetectorOptions, Omit<NodePoliciesOptions, "detector"> {
  /** The failure detector's shell; created from these options when absent. */
  readonly detector?: FailureDetector;
  /** The instance of this process's lease, which owns its sessions in the store. */
  readonly instance: string;
  readonly random: Random;
  /** Called when a node's state may differ from the store's. */
  readonly onChanged: (node: LiveNode) => void;
  /** Called when an event shows that another replica took a node from this one. */
  readonly onMovedAway?: (node: LiveNode) => void;
  /** Called when the labels of a node with a stream have changed in the store. */
  readonly onLabelsChanged: (node: LiveNode) => void;
  /** Called when a node's flapping, reboot or hardware trouble begins or ends. */
  readonly onConditionsChanged?: (node: LiveNode) => void;
}

const NO_LABELS: TrustedLabels = new Map();

/** Time within which a live agent that lost its session reconnects, see superseded(). */
const CONTESTED_MS = 15_000;
/**
 * Like CONTESTED_MS, for two agents that are known to alternate. They alternate every 30 to 75 s; this is longer than
 * two alternations.
 */
const DUPLICATED_MS = 180_000;

function contestedForMs({ isDuplicated, isTakenOver }: SuccessfulOpening): number {
  if (isDuplicated) return DUPLICATED_MS;
  return isTakenOver ? CONTESTED_MS : 0;
}

/**
 * The nodes that this process holds: their sessions, their last signs of life, and their health decisions. All state is
 * in memory, and all methods are synchronous. `onChanged` reports what must be written.
 */
export class Replica {
  readonly instance: string;
  readonly detector: FailureDetector;
  readonly policies: NodePolicies;
  readonly nodes = new LiveNodes((node) => this.policies.close(node));
  readonly watched = new WatchedNodes((nodeId) => this.nodes.find(nodeId));
  /** The actor of this replica's events: "replica:<instance>". */
  readonly #actor: string;
  readonly #options: ReplicaOptions;
  readonly #hooks: EffectHooks;
  readonly #pages = new SamplePages();
  readonly #decisions: FailureEvidence;
  #isLeaseHeld = false;
  #isClosing = false;
  #beats = 0;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.instance = options.instance;
    this.#actor = replicaActor(options.instance);
    this.detector = options.detector ?? new FailureDetector(options);
    this.#decisions = new FailureEvidence(options);
    this.policies = new NodePolicies({ ...options, detector: this.detector });
    this.#hooks = {
      random: options.random,
      wallMs: () => options.clock.wallMs(),
      lose: (node, farewell) => this.#lose(node, farewell),
      cut: (node, why, farewell) => this.#cut(node, why, farewell),
      onMovedAway: (node) => options.onMovedAway?.(node),
      onLabelsChanged: options.onLabelsChanged,
      onConditionsChanged: (node) => options.onConditionsChanged?.(node),
    };
  }

  /** Number of heartbeats that have taken effect. */
  get beats(): number {
    return this.#beats;
  }

  /** Whether a Hello can be admitted: the lease is certainly held, and shutdown has not begun. */
  get mayOpen(): boolean {
    return this.#isLeaseHeld && !this.#isClosing;
  }

  /** Whether the lease may have expired. */
  get isInDoubt(): boolean {
    return !this.#isLeaseHeld && this.detector.isSuspended && !this.#isClosing;
  }

  /** Whether shutdown has begun. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /**
   * The lease is held: admit Hellos, and resume health decisions. Every node's deadline is extended by the time that
   * the lease was in doubt.
   */
  leaseHeld(): void {
    this.#isLeaseHeld = true;
    if (!this.#isClosing) this.detector.resume();
  }

  /**
   * Called when the lease may have expired. Other replicas may hold these nodes, so none is declared unhealthy.
   * `sinceMs` is when the lease was last certainly held.
   */
  leaseDoubted(sinceMs: number): void {
    this.#isLeaseHeld = false;
    this.detector.suspend(sinceMs);
  }

  /**
   * Replace the node's current session by one from the store, unless this replica holds a later session. Health does
   * not change.
   */
  take(
    stream: NodeStream,
    opening: SuccessfulOpening,
    hello: {
      readonly wishes: Wishes;
      readonly publicKey: Uint8Array;
      readonly instanceId?: string;
      readonly clockSkewMs?: number | null;
      readonly labels?: TrustedLabels;
    },
  ): LiveNode {
    const held = this.nodes.find(opening.nodeId);
    if (held !== undefined && held.epoch > opening.epoch) {
      // End the stream. The store's response came so late that this replica has since adopted the node from another
      // one.
      stream.leave(movedOn(held.id, this.#options.random));
      return held;
    }
    const connection = connectionAfter("opened", this.#now());
    const { labels = NO_LABELS } = hello;
    const node = this.#current(opening) ?? this.#hold({ ...opening, connection }, labels);
    node.isDuplicated = opening.isDuplicated;
    this.nodes.setStream(node, stream)?.leave(superseded(node.id, node, this.#options.random));
    node.instanceId = hello.instanceId ?? "";
    node.contestedUntilMs = Math.max(node.contestedUntilMs, this.#options.clock.nowMs() + contestedForMs(opening));
    node.epoch = opening.epoch;
    node.asOfRevision = opening.revision;
    node.openedRevision = opening.openedRevision;
    node.membership = opening.membership;
    node.infoDigest = opening.infoDigest;
    node.publicKey = hello.publicKey;
    node.clockSkewMs = hello.clockSkewMs ?? null;
    node.work = null;
    node.connection = connection;
    node.writtenConnection = connection;
    node.writtenHealth = opening.detectedHealth;
    node.isStoreUncertain = false;
    this.policies.open(node, labels, hello.wishes);
    this.heard(node);
    this.#options.onChanged(node);
    if (node.isDuplicated) this.#options.onConditionsChanged?.(node);
    return node;
  }

  /**
   * Whether another agent may have executions of the node that this session's agent lacks: this session replaced a
   * connected one, or two agents are known to use the identity. Executions that this agent reports as gone may run on
   * the other agent's machine.
   */
  isContested(node: LiveNode): boolean {
    return this.#options.clock.nowMs() < node.contestedUntilMs;
  }

  /** Record that only one agent uses the node's identity from now on. */
  identityCleared(nodeId: string): void {
    const node = this.nodes.find(nodeId);
    if (node !== undefined) node.isDuplicated = false;
  }

  /**
   * Hold nodes without a stream, each with its full grace period. Nodes already held under this epoch or a later one do
   * not change. Returns the ids of the added nodes.
   *
   * @param labels labels of join tokens and operators, keyed by node id.
   */
  adopt(
    rows: readonly OwnedSession[],
    asOfRevision: bigint,
    labels: ReadonlyMap<string, { readonly trusted: TrustedLabels }> = new Map(),
  ): ReadonlySet<string> {
    const added = new Set<string>();
    for (const row of rows) {
      const held = this.nodes.find(row.nodeId);
      if (held !== undefined && held.epoch >= row.epoch) continue;
      if (held !== undefined) this.notOurs(held);
      added.add(row.nodeId);
      const node = this.#hold(row, labels.get(row.nodeId)?.trusted ?? NO_LABELS);
      node.epoch = row.epoch;
      node.asOfRevision = asOfRevision;
      node.membership = row.membership;
      // Disconnect a node that the store shows as connected, because the Welcome of its session may never have been
      // sent.
      if (row.connection.state === "CONNECTED") this.#disconnect(node);
    }
    return added;
  }

  /** Record that a frame of a node's current stream was received. */
  heard(node: LiveNode): void {
    const nowMs = this.#options.clock.nowMs();
    node.lastFrameAtMs = nowMs;
    this.detector.heard(node, this.detector.at(nowMs));
  }

  /**
   * Apply a Beat: the hot path. Only the first Beat of a session can make a node healthy again, because later ones may
   * be old Beats that queued up.
   */
  beat(node: LiveNode, usage: ResourceUsage | undefined, isFirst: boolean): void {
    const nowMs = this.#options.clock.nowMs();
    node.lastFrameAtMs = nowMs;
    this.#beats += 1;
    if (node.terms.awaited !== null) this.policies.onBeat(node, isFirst);
    if (isFirst && node.timing.health !== "HEALTHY") {
      this.#decisions.onReturn(node, this.#options.clock.nowMs());
      node.health = healthAfter({ kind: "beat" }, this.#now());
      node.evidence = null;
      this.detector.declare(node, node.health.state);
      this.#options.onChanged(node);
    } else {
      this.detector.heard(node, this.detector.at(nowMs));
    }
    if (usage !== undefined) {
      node.samples ??= new SampleRing(nowMs, this.#pages);
      node.samples.add(usage, nowMs);
      if (takeGpuSample(node, usage)) this.#options.onConditionsChanged?.(node);
    }
    this.watched.touched(node);
  }

  /** Handle the goodbye of an agent that stops intentionally. */
  goodbye(node: LiveNode, stream: NodeStream, reason: string): void {
    if (node.stream !== stream) return;
    this.nodes.takeStream(node);
    Object.assign(node, statesAfterGoodbye(this.#now(), reason));
    this.detector.declare(node, node.health.state);
    this.#options.onChanged(node);
  }

  /**
   * Handle the goodbye of an agent that restarts. It leaves its executions running and will come back. Until then, the
   * node's thresholds decide its health.
   */
  restarting(node: LiveNode, stream: NodeStream, reason: string): void {
    if (node.stream !== stream) return;
    this.nodes.takeStream(node);
    const connection = connectionAfter("restarting", this.#now());
    const said = reason === "" ? "" : `: ${reason}`;
    node.connection = { ...connection, message: `${connection.message}${said}` };
    this.#options.onChanged(node);
  }

  /** Handle a stream that broke without a goodbye. */
  broken(node: LiveNode, stream: NodeStream): void {
    if (node.stream !== stream) return;
    this.nodes.takeStream(node);
    this.detector.broken(this.nodes.sessions);
    this.#disconnect(node);
  }

  /** Release a node. The store names another owner for it, or none. */
  notOurs(node: LiveNode): void {
    this.#lose(node, movedOn(node.id, this.#options.random));
  }

  /** Apply events caused by others to the held nodes. */
  apply(events: readonly EventRow[]): void {
    for (const event of events) {
      const node = this.nodes.find(event.subject);
      if (node === undefined || event.revision <= node.asOfRevision) continue;
      // Skip event types that only a newer release knows.
      if (!isEventType(event.type)) continue;
      const effect = effectOf(event, this.#actor);
      if (effect.kind === "moved" && event.revision <= node.openedRevision) continue;
      applyEffect(node, effect, this.#hooks);
    }
  }

  /**
   * Declare silent nodes UNHEALTHY or UNKNOWN. Must be called each tick, after the sockets were read, so that waiting
   * frames count.
   */
  evaluate(): void {
    this.policies.pacer.adjust();
    for (const due of this.detector.evaluate(this.nodes)) this.#declare(due);
  }

  /** Stop admitting Hellos. Current nodes are still served, and their health is still decided. */
  drain(): void {
    this.#isClosing = true;
  }

  /**
   * End every stream, spread over the time that it takes to welcome the agents elsewhere. No node is declared unhealthy
   * because of it.
   */
  close(windowMs: number): void {
    this.#isClosing = true;
    // Suspend health decisions, because no heartbeat can arrive anymore.
    this.detector.suspend(this.#options.clock.nowMs());
    for (const node of this.nodes.all()) {
      this.nodes.takeStream(node)?.leave(shuttingDown(windowMs, this.#options.random));
    }
  }

  /** The held node, unless another replica has held it since. In that case, only the store has its state. */
  #current({ nodeId, epoch, previous }: SuccessfulOpening): LiveNode | undefined {
    const node = this.nodes.find(nodeId);
    if (node === undefined) return undefined;
    if (previous.replicaId === this.instance && epoch === node.epoch + 1) return node;
    this.#lose(node, superseded(nodeId, node, this.#options.random));
    return undefined;
  }

  #hold(row: Pick<OwnedSession, "nodeId" | "detectedHealth" | "connection">, labels: TrustedLabels): LiveNode {
    const { terms, thresholds } = this.policies.begin(row.nodeId, labels);
    const node = createLiveNode(row, terms, (held) => this.detector.track(held, held.health.state, thresholds));
    this.nodes.add(node);
    return node;
  }

  #declare(due: Due<LiveNode>): void {
    const { timing, to, silentMs } = due;
    const node = timing.subject;
    node.health = healthAfter({ kind: "silence", to, silentMs }, this.#now());
    node.declaredAtMs = this.#options.clock.nowMs();
    node.evidence = this.#decisions.evidenceOf(due, node.declaredAtMs);
    this.#options.onChanged(node);
    const why = { reason: "STREAM_STALE", message: "nothing arrived on its stream" };
    this.#cut(node, why, stale(node.id, silentMs));
  }

  #cut(node: LiveNode, why: CutReason, farewell: Farewell): void {
    const stream = this.nodes.takeStream(node);
    if (stream === null) return;
    this.#disconnect(node, why);
    stream.leave(farewell);
  }

  /** @param why absent for a stream that broke. */
  #disconnect(node: LiveNode, why?: CutReason): void {
    node.connection = { ...connectionAfter("broken", this.#now()), ...why };
    this.#options.onChanged(node);
  }

  #lose(node: LiveNode, farewell: Farewell): void {
    this.detector.untrack(node);
    this.nodes.remove(node)?.leave(farewell);
    this.watched.released(node.id);
    node.samples?.release();
    node.samples = null;
  }

  #now(): { readonly actor: string; readonly atMs: number } {
    return { actor: this.#actor, atMs: this.#options.clock.wallMs() };
  }
}
