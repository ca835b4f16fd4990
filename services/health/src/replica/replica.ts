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
import type { OwnedSession, StoredEvent } from "@rollcall/store";
import { takeGpuSample } from "../conditions/gpu-samples.ts";
import { SilenceVerdicts } from "../conditions/silence-verdicts.ts";
import { NodePolicies, type NodePoliciesOptions } from "../policy/node-policies.ts";
import type { TrustedLabels } from "../policy/node-terms.ts";
import type { SuccessfulOpening } from "../record/health-record.ts";
import { WatchedNodes } from "../watch/watched-nodes.ts";
import { applyEffect, type CutReason, type EffectHooks } from "./apply-effect.ts";
import { type Farewell, movedOn, type Random, shuttingDown, stale, superseded } from "./farewell.ts";
import { createHeldNode, type HeldNode, type NodeStream, statesAfterGoodbye } from "./held-node.ts";
import { HeldNodes } from "./held-nodes.ts";
import { SamplePages } from "./sample-pages.ts";
import { SampleRing } from "./sample-ring.ts";
import { Silence, type SilenceOptions } from "./silence.ts";

/** A session that the record opened for a Hello. */

export interface ReplicaOptions extends SilenceOptions, Omit<NodePoliciesOptions, "silence"> {
  /** The timing of the nodes; created from these options when absent. */
  readonly silence?: Silence;
  /** The instance of this process's lease, which owns its sessions in the record. */
  readonly instance: string;
  readonly random: Random;
  /** Called when a node's state may differ from the record's. */
  readonly onChanged: (node: HeldNode) => void;
  /** Called when the log says that another replica took a node from here. */
  readonly onMovedAway?: (node: HeldNode) => void;
  /** Called when the labels of a node that has a stream have changed in the record. */
  readonly onLabelsChanged: (node: HeldNode) => void;
  /** Called when a node flaps, rebooted or is in hardware trouble, and when that is over. */
  readonly onConditionsChanged?: (node: HeldNode) => void;
}

const NO_LABELS: TrustedLabels = new Map();

/** An agent that lost its session and lives is back by then, see superseded(). */
const CONTESTED_MS = 15_000;
/** The same where two agents are known to take turns, every 30 to 75 s: longer than two turns. */
const DUPLICATED_MS = 180_000;

function contestedForMs({ isDuplicated, isTakenOver }: SuccessfulOpening): number {
  if (isDuplicated) return DUPLICATED_MS;
  return isTakenOver ? CONTESTED_MS : 0;
}

/**
 * The nodes that this process holds: their sessions, when each was last heard, and the verdicts of silence. All in
 * memory and synchronous; `onChanged` reports what must be written.
 */
export class Replica {
  readonly instance: string;
  readonly silence: Silence;
  readonly policies: NodePolicies;
  readonly nodes = new HeldNodes((node) => this.policies.close(node));
  readonly watched = new WatchedNodes((nodeId) => this.nodes.find(nodeId));
  /** The actor of its events: "replica:<instance>". */
  readonly #actor: string;
  readonly #options: ReplicaOptions;
  readonly #hooks: EffectHooks;
  readonly #pages = new SamplePages();
  readonly #verdicts: SilenceVerdicts;
  #isLeaseHeld = false;
  #isClosing = false;
  #beats = 0;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.instance = options.instance;
    this.#actor = replicaActor(options.instance);
    this.silence = options.silence ?? new Silence(options);
    this.#verdicts = new SilenceVerdicts(options);
    this.policies = new NodePolicies({ ...options, silence: this.silence });
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

  /** How many heartbeats took effect so far. */
  get beats(): number {
    return this.#beats;
  }

  /** Whether a Hello can be admitted: the lease is certainly held, and the end has not begun. */
  get mayOpen(): boolean {
    return this.#isLeaseHeld && !this.#isClosing;
  }

  /** Whether the lease may have run out. */
  get isInDoubt(): boolean {
    return !this.#isLeaseHeld && this.silence.isSuspended && !this.#isClosing;
  }

  /** Whether the end has begun. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** The lease is held: admit hellos, and judge again. The time of a doubt is granted to every node. */
  leaseHeld(): void {
    this.#isLeaseHeld = true;
    if (!this.#isClosing) this.silence.resume();
  }

  /**
   * The lease may have run out: other replicas may hold these nodes, so none is judged. `sinceMs` is when the lease was
   * last certainly held.
   */
  leaseDoubted(sinceMs: number): void {
    this.#isLeaseHeld = false;
    this.silence.suspend(sinceMs);
  }

  /** Make a recorded session the node's current one, unless a later one is held here. Health does not change. */
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
  ): HeldNode {
    const held = this.nodes.find(opening.nodeId);
    if (held !== undefined && held.epoch > opening.epoch) {
      // The answer is so late that this replica has since adopted the node from another one.
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
    node.isRecordUncertain = false;
    this.policies.open(node, labels, hello.wishes);
    this.heard(node);
    this.#options.onChanged(node);
    if (node.isDuplicated) this.#options.onConditionsChanged?.(node);
    return node;
  }

  /**
   * Whether another agent may have executions of the node that this session's agent lacks: it took the session from
   * one that was connected, or two are known to use the identity. What it calls gone may run on the other's machine.
   */
  isContested(node: HeldNode): boolean {
    return this.#options.clock.nowMs() < node.contestedUntilMs;
  }

  /** Only one agent uses the node's identity any more. */
  identityCleared(nodeId: string): void {
    const node = this.nodes.find(nodeId);
    if (node !== undefined) node.isDuplicated = false;
  }

  /**
   * Hold nodes without a stream, each with its full grace. Nodes held under this epoch or a later one do not change.
   * Returns the ids of the others.
   *
   * @param labels labels of token and operator, by node id.
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
      // The record may call it connected, by a session whose Welcome was never sent.
      if (row.connection.state === "CONNECTED") this.#disconnect(node);
    }
    return added;
  }

  /** Note a frame of a node's current stream. */
  heard(node: HeldNode): void {
    const nowMs = this.#options.clock.nowMs();
    node.lastFrameAtMs = nowMs;
    this.silence.heard(node, this.silence.at(nowMs));
  }

  /**
   * Apply a Beat: the hot path. Only the first Beat of a session may bring a node back, so that a queue of old ones
   * cannot.
   */
  beat(node: HeldNode, usage: ResourceUsage | undefined, isFirst: boolean): void {
    const nowMs = this.#options.clock.nowMs();
    node.lastFrameAtMs = nowMs;
    this.#beats += 1;
    if (node.terms.awaited !== null) this.policies.onBeat(node, isFirst);
    if (isFirst && node.timing.health !== "HEALTHY") {
      this.#verdicts.onReturn(node, this.#options.clock.nowMs());
      node.health = healthAfter({ kind: "beat" }, this.#now());
      node.evidence = null;
      this.silence.declare(node, node.health.state);
      this.#options.onChanged(node);
    } else {
      this.silence.heard(node, this.silence.at(nowMs));
    }
    if (usage !== undefined) {
      node.samples ??= new SampleRing(nowMs, this.#pages);
      node.samples.add(usage, nowMs);
      if (takeGpuSample(node, usage)) this.#options.onConditionsChanged?.(node);
    }
    this.watched.touched(node);
  }

  /** The agent stops on purpose. */
  goodbye(node: HeldNode, stream: NodeStream, reason: string): void {
    if (node.stream !== stream) return;
    this.nodes.takeStream(node);
    Object.assign(node, statesAfterGoodbye(this.#now(), reason));
    this.silence.declare(node, node.health.state);
    this.#options.onChanged(node);
  }

  /** The agent stops, leaves its executions running, and comes back: health follows its thresholds. */
  restarting(node: HeldNode, stream: NodeStream, reason: string): void {
    if (node.stream !== stream) return;
    this.nodes.takeStream(node);
    const connection = connectionAfter("restarting", this.#now());
    const said = reason === "" ? "" : `: ${reason}`;
    node.connection = { ...connection, message: `${connection.message}${said}` };
    this.#options.onChanged(node);
  }

  /** A node's stream broke without a goodbye. */
  broken(node: HeldNode, stream: NodeStream): void {
    if (node.stream !== stream) return;
    this.nodes.takeStream(node);
    this.silence.broken(this.nodes.sessions);
    this.#disconnect(node);
  }

  /** The record names another owner, or none: release the node. */
  notOurs(node: HeldNode): void {
    this.#lose(node, movedOn(node.id, this.#options.random));
  }

  /** Apply events of others to the held nodes. */
  apply(events: readonly StoredEvent[]): void {
    for (const event of events) {
      const node = this.nodes.find(event.subject);
      if (node === undefined || event.revision <= node.asOfRevision) continue;
      // A newer release may write events that are unknown here.
      if (!isEventType(event.type)) continue;
      const effect = effectOf(event, this.#actor);
      if (effect.kind === "moved" && event.revision <= node.openedRevision) continue;
      applyEffect(node, effect, this.#hooks);
    }
  }

  /** Declare silent nodes. Call it each tick, after the sockets were read: what waited there counts as heard. */
  judge(): void {
    this.policies.pacer.adjust();
    for (const due of this.silence.judge(this.nodes)) this.#declare(due);
  }

  /** Admit no further hello. Present nodes are served and judged as before. */
  drain(): void {
    this.#isClosing = true;
  }

  /** End every stream, spread over the time that it takes to welcome the agents elsewhere. No node is judged by it. */
  close(windowMs: number): void {
    this.#isClosing = true;
    // No node can be heard from here on, so none is judged.
    this.silence.suspend(this.#options.clock.nowMs());
    for (const node of this.nodes.all()) {
      this.nodes.takeStream(node)?.leave(shuttingDown(windowMs, this.#options.random));
    }
  }

  /** The state of a node, unless another replica has held it since: then only the record has it. */
  #current({ nodeId, epoch, previous }: SuccessfulOpening): HeldNode | undefined {
    const node = this.nodes.find(nodeId);
    if (node === undefined) return undefined;
    if (previous.replicaId === this.instance && epoch === node.epoch + 1) return node;
    this.#lose(node, superseded(nodeId, node, this.#options.random));
    return undefined;
  }

  #hold(row: Pick<OwnedSession, "nodeId" | "detectedHealth" | "connection">, labels: TrustedLabels): HeldNode {
    const { terms, thresholds } = this.policies.begin(row.nodeId, labels);
    const node = createHeldNode(row, terms, (held) => this.silence.track(held, held.health.state, thresholds));
    this.nodes.add(node);
    return node;
  }

  #declare(due: Due<HeldNode>): void {
    const { timing, to, silentMs } = due;
    const node = timing.subject;
    node.health = healthAfter({ kind: "silence", to, silentMs }, this.#now());
    node.declaredAtMs = this.#options.clock.nowMs();
    node.evidence = this.#verdicts.evidenceOf(due, node.declaredAtMs);
    this.#options.onChanged(node);
    const why = { reason: "STREAM_STALE", message: "its stream fell silent" };
    this.#cut(node, why, stale(node.id, silentMs));
  }

  #cut(node: HeldNode, why: CutReason, farewell: Farewell): void {
    const stream = this.nodes.takeStream(node);
    if (stream === null) return;
    this.#disconnect(node, why);
    stream.leave(farewell);
  }

  /** @param why absent for a stream that broke. */
  #disconnect(node: HeldNode, why?: CutReason): void {
    node.connection = { ...connectionAfter("broken", this.#now()), ...why };
    this.#options.onChanged(node);
  }

  #lose(node: HeldNode, farewell: Farewell): void {
    this.silence.untrack(node);
    this.nodes.remove(node)?.leave(farewell);
    this.watched.released(node.id);
    node.samples?.release();
    node.samples = null;
  }

  #now(): { readonly actor: string; readonly atMs: number } {
    return { actor: this.#actor, atMs: this.#options.clock.wallMs() };
  }
}
