import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { connectionAfter, type Due, healthAfter, isEventType, type Wishes } from "@rollcall/domain";
import type { OwnedSession, StoredEvent } from "@rollcall/store";
import { watchGpus } from "../conditions/gpu-watch.ts";
import { SilenceVerdicts } from "../conditions/silence-verdicts.ts";
import { NodePolicies } from "../policy/node-policies.ts";
import type { TrustedLabels } from "../policy/node-terms.ts";
import { WatchedNodes } from "../watch/watched-nodes.ts";
import { applyEffect, type CutReason, type EffectHooks } from "./apply-effect.ts";
import { effectOf } from "./event-effect.ts";
import { type Farewell, movedOn, shuttingDown, stale, superseded } from "./farewell.ts";
import { createHeldNode, type HeldNode, type NodeStream, statesAfterGoodbye } from "./held-node.ts";
import { HeldNodes } from "./held-nodes.ts";
import type { OpenedSession, ReplicaOptions } from "./replica-options.ts";
import { SamplePages } from "./sample-pages.ts";
import { SampleRing } from "./sample-ring.ts";
import { Silence } from "./silence.ts";

export type { OpenedSession, ReplicaOptions };

const NO_LABELS: TrustedLabels = new Map();

/**
 * The nodes that this process answers for: their sessions, when each was last heard, and what follows from silence.
 * Everything is in memory and happens at once; what others have to know is handed to `onChanged`.
 */
export class Replica {
  readonly instance: string;
  readonly silence: Silence;
  readonly policies: NodePolicies;
  readonly nodes = new HeldNodes((node) => this.policies.close(node));
  readonly watched = new WatchedNodes((nodeId) => this.nodes.find(nodeId));
  /** How it signs what it observes: "replica:<instance>". */
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
    this.#actor = `replica:${options.instance}`;
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

  /** Heartbeats that took effect so far. */
  get beats(): number {
    return this.#beats;
  }

  /** Whether a Hello can be taken: the lease is held for certain, and the end has not begun. */
  get mayOpen(): boolean {
    return this.#isLeaseHeld && !this.#isClosing;
  }

  /** Whether a lease that was held may have run out. */
  get isInDoubt(): boolean {
    return !this.#isLeaseHeld && this.silence.isSuspended && !this.#isClosing;
  }

  /** Whether the end has begun. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** The lease is held: take hellos, and judge again. All the time of a doubt is granted to every node. */
  leaseHeld(): void {
    this.#isLeaseHeld = true;
    if (!this.#isClosing) this.silence.resume();
  }

  /**
   * The lease may have run out: others may hold these nodes already, so nothing is judged. `sinceMs` was the last sure
   * moment.
   */
  leaseDoubted(sinceMs: number): void {
    this.#isLeaseHeld = false;
    this.silence.suspend(sinceMs);
  }

  /**
   * Make a session that the record has opened the node's current one, unless a later one is held here. Health stays what
   * it is.
   */
  take(
    stream: NodeStream,
    opening: OpenedSession,
    hello: {
      readonly wishes: Wishes;
      readonly publicKey: Uint8Array;
      readonly clockSkewMs?: number | null;
      readonly labels?: TrustedLabels;
    },
  ): HeldNode {
    const held = this.nodes.find(opening.nodeId);
    if (held !== undefined && held.epoch > opening.epoch) {
      // The answer came so late that this replica has taken the node over from another one since.
      stream.leave(movedOn(held.id, this.#options.random));
      return held;
    }
    const connection = connectionAfter("opened", this.#now());
    const { labels = NO_LABELS } = hello;
    const node = this.#current(opening) ?? this.#hold({ ...opening, connection }, labels);
    this.nodes.setStream(node, stream)?.leave(superseded(node.id, this.#options.random));
    node.epoch = opening.epoch;
    node.asOfRevision = opening.revision;
    node.membership = opening.membership;
    node.infoDigest = opening.infoDigest;
    node.publicKey = hello.publicKey;
    node.clockSkewMs = hello.clockSkewMs ?? null;
    node.connection = connection;
    node.writtenConnection = connection;
    node.writtenHealth = opening.detectedHealth;
    node.isRecordUncertain = false;
    this.policies.open(node, labels, hello.wishes);
    this.heard(node);
    this.#options.onChanged(node);
    return node;
  }

  /**
   * Hold nodes that have no stream here, each with its full grace; those held under this epoch or a later one stay as
   * they are.
   *
   * @param labels those of token and operator, by node id.
   */
  adopt(
    rows: readonly OwnedSession[],
    asOfRevision: bigint,
    labels: ReadonlyMap<string, { readonly trusted: TrustedLabels }> = new Map(),
  ): void {
    for (const row of rows) {
      const held = this.nodes.find(row.nodeId);
      if (held !== undefined && held.epoch >= row.epoch) continue;
      if (held !== undefined) this.notOurs(held);
      const node = this.#hold(row, labels.get(row.nodeId)?.trusted ?? NO_LABELS);
      node.epoch = row.epoch;
      node.asOfRevision = asOfRevision;
      node.membership = row.membership;
      // The record may call it connected: by a session whose Welcome this process never got to send.
      if (row.connection.state === "CONNECTED") this.#disconnect(node);
    }
  }

  /** Note that a frame of a node's current stream was received. */
  heard(node: HeldNode): void {
    const nowMs = this.#options.clock.nowMs();
    node.lastFrameAtMs = nowMs;
    this.silence.heard(node, this.silence.at(nowMs));
  }

  /**
   * Let a Beat take effect: the hot path. Only the first one of a session may bring a node back, so that no queue of
   * old ones can.
   */
  beat(node: HeldNode, usage: ResourceUsage | undefined, isFirst: boolean): void {
    const nowMs = this.#options.clock.nowMs();
    node.lastFrameAtMs = nowMs;
    this.#beats += 1;
    if (node.terms.awaited !== null) this.policies.onBeat(node, isFirst);
    if (isFirst && node.watch.health !== "HEALTHY") {
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
      if (watchGpus(node, usage.gpus)) this.#options.onConditionsChanged?.(node);
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

  /** A node's stream is gone, for whatever reason that its agent did not say. */
  broken(node: HeldNode, stream: NodeStream): void {
    if (node.stream !== stream) return;
    this.nodes.takeStream(node);
    this.silence.broken(this.nodes.sessions);
    this.#disconnect(node);
  }

  /** The record says that another holds the node, or nobody: what is known of it here counts no more. */
  notOurs(node: HeldNode): void {
    this.#lose(node, movedOn(node.id, this.#options.random));
  }

  /** Follow what others did to the nodes that are held. */
  apply(events: readonly StoredEvent[]): void {
    for (const event of events) {
      const node = this.nodes.find(event.subject);
      if (node === undefined || event.revision <= node.asOfRevision) continue;
      // A replica of a newer release may write events that mean nothing here.
      if (!isEventType(event.type)) continue;
      applyEffect(node, effectOf(event, this.#actor), this.#hooks);
    }
  }

  /**
   * Declare who fell silent. Call it each tick, after the sockets have been read: what waited there counts as heard.
   */
  judge(): void {
    this.policies.pacer.adjust();
    for (const due of this.silence.judge(this.nodes)) this.#declare(due);
  }

  /** The end has begun: take no more hellos. Whoever is here is served and judged as before. */
  drain(): void {
    this.#isClosing = true;
  }

  /**
   * End every stream, spread over the time that it takes to welcome them elsewhere. It says nothing about their nodes.
   */
  close(windowMs: number): void {
    this.#isClosing = true;
    // From here on nobody can be heard, so nobody is judged.
    this.silence.suspend(this.#options.clock.nowMs());
    for (const node of this.nodes.all()) {
      this.nodes.takeStream(node)?.leave(shuttingDown(windowMs, this.#options.random));
    }
  }

  /**
   * What is remembered of a node, unless another replica has held it since: then only the record knows how it fared.
   */
  #current({ nodeId, epoch, previous }: OpenedSession): HeldNode | undefined {
    const node = this.nodes.find(nodeId);
    if (node === undefined) return undefined;
    if (previous.replicaId === this.instance && epoch === node.epoch + 1) return node;
    this.#lose(node, superseded(nodeId, this.#options.random));
    return undefined;
  }

  #hold(row: Pick<OwnedSession, "nodeId" | "detectedHealth" | "connection">, labels: TrustedLabels): HeldNode {
    const { terms, thresholds } = this.policies.begin(row.nodeId, labels);
    const node = createHeldNode(row, terms, (held) => this.silence.watch(held, held.health.state, thresholds));
    this.nodes.add(node);
    return node;
  }

  #declare(due: Due<HeldNode>): void {
    const { watch, to, silentMs } = due;
    const node = watch.subject;
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

  /** @param why absent for a stream whose end nobody explained. */
  #disconnect(node: HeldNode, why?: CutReason): void {
    node.connection = { ...connectionAfter("broken", this.#now()), ...why };
    this.#options.onChanged(node);
  }

  #lose(node: HeldNode, farewell: Farewell): void {
    this.silence.unwatch(node);
    this.nodes.remove(node)?.leave(farewell);
    this.watched.released(node.id);
    node.samples?.release();
    node.samples = null;
  }

  #now(): { readonly actor: string; readonly atMs: number } {
    return { actor: this.#actor, atMs: this.#options.clock.wallMs() };
  }
}
