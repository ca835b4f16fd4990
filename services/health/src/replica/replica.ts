import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import {
  type Connection,
  connectionAfter,
  type Due,
  healthAfter,
  intervalsFor,
  type Membership,
} from "@rollcall/domain";
import type { HeldNode as RecordedNode, SessionOpening, StoredEvent } from "@rollcall/store";
import { effectOf } from "./event-effect.ts";
import {
  deleted,
  type Farewell,
  movedOn,
  type Random,
  rejected,
  shuttingDown,
  stale,
  superseded,
} from "./farewell.ts";
import { createHeldNode, type HeldNode, type NodeStream, statesAfterGoodbye } from "./held-node.ts";
import { HeldNodes } from "./held-nodes.ts";
import { SampleRing } from "./sample-ring.ts";
import { Silence, type SilenceOptions } from "./silence.ts";

/** A session that the record has opened for a Hello. */
export type OpenedSession = Extract<SessionOpening, { outcome: "OPENED" }>;

export interface ReplicaOptions extends SilenceOptions {
  /** The instance of this process's lease, under which the record knows its sessions. */
  readonly instance: string;
  readonly random: Random;
  /** Called when a node's state may differ from the record's. */
  readonly onChanged: (node: HeldNode) => void;
  /** Called when the labels of a node that has a stream have changed in the record. */
  readonly onLabelsChanged: (node: HeldNode) => void;
}

/**
 * The nodes that this process answers for: their sessions, when each was last heard, and what follows from silence.
 * Everything is in memory and happens at once; what others have to know is handed to `onChanged`.
 */
export class Replica {
  readonly instance: string;
  readonly silence: Silence;
  readonly nodes = new HeldNodes();
  /** How it signs what it observes: "replica:<instance>". */
  readonly #actor: string;
  readonly #options: ReplicaOptions;
  #isLeaseHeld = false;
  #isClosing = false;
  #beats = 0;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.instance = options.instance;
    this.#actor = `replica:${options.instance}`;
    this.silence = new Silence(options);
  }

  /** Heartbeats that took effect so far. */
  get beats(): number {
    return this.#beats;
  }

  /** Whether a Hello can be taken: the lease is held for certain, and the end has not begun. */
  get mayOpen(): boolean {
    return this.#isLeaseHeld && !this.#isClosing;
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

  /** The lease may have run out: others may hold these nodes already, so nothing is judged. `sinceMs` was the last sure moment. */
  leaseDoubted(sinceMs: number): void {
    this.#isLeaseHeld = false;
    this.silence.suspend(sinceMs);
  }

  /** The connection of a node whose session this replica opens. */
  openedConnection(): Connection {
    return connectionAfter("opened", this.#now());
  }

  /** Make a session that the record has opened the node's current one. Health stays what it is. */
  take(
    stream: NodeStream,
    opening: OpenedSession,
    hello: { readonly wishedHeartbeatMs: number | null; readonly publicKey: Uint8Array },
  ): HeldNode {
    const connection = this.openedConnection();
    const node = this.#current(opening) ?? this.#hold({ ...opening, connection });
    this.nodes.setStream(node, stream)?.leave(superseded(node.id, this.#options.random));
    node.epoch = opening.epoch;
    node.asOfRevision = opening.revision;
    node.membership = opening.membership;
    node.maybeMarked = opening.marked;
    node.infoDigest = opening.infoDigest;
    node.publicKey = hello.publicKey;
    node.connection = connection;
    node.writtenConnection = connection;
    node.writtenHealth = opening.detectedHealth;
    node.intervals = intervalsFor(this.#options.policy, hello.wishedHeartbeatMs);
    this.silence.setHeartbeat(node, node.intervals.heartbeatMs);
    this.heard(node);
    this.#options.onChanged(node);
    return node;
  }

  /** Hold nodes that have no stream here, each with its full grace; those held under this epoch or a later one stay as they are. */
  adopt(rows: readonly RecordedNode[], asOfRevision: bigint): void {
    for (const row of rows) {
      const held = this.nodes.find(row.nodeId);
      if (held !== undefined && held.epoch >= row.epoch) continue;
      if (held !== undefined) this.notOurs(held);
      const node = this.#hold(row);
      node.epoch = row.epoch;
      node.asOfRevision = asOfRevision;
      node.membership = row.membership;
      node.maybeMarked = row.marked;
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

  /** Let a Beat take effect: the hot path. Only the first one of a session may bring a node back, so that no queue of old ones can. */
  beat(node: HeldNode, usage: ResourceUsage | undefined, isFirst: boolean): void {
    const nowMs = this.#options.clock.nowMs();
    node.lastFrameAtMs = nowMs;
    this.#beats += 1;
    if (isFirst && node.watch.health !== "HEALTHY") {
      node.health = healthAfter({ kind: "beat" }, this.#now());
      this.silence.declare(node, node.health.state);
      this.#options.onChanged(node);
    } else {
      this.silence.heard(node, this.silence.at(nowMs));
    }
    if (usage === undefined) return;
    node.samples ??= new SampleRing(nowMs);
    node.samples.add(usage, nowMs);
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
      if (node !== undefined && event.revision > node.asOfRevision) this.#applyTo(node, event);
    }
  }

  /** Declare who fell silent. Call it each tick, after the sockets have been read: what waited there counts as heard. */
  judge(): void {
    for (const due of this.silence.judge()) this.#declare(due);
  }

  /** End every stream, spread over the time that it takes to welcome them elsewhere. It says nothing about their nodes. */
  close(): void {
    this.#isClosing = true;
    // From here on nobody can be heard, so nobody is judged.
    this.silence.suspend(this.#options.clock.nowMs());
    const streams = this.nodes.sessions;
    for (const node of this.nodes.all()) {
      this.nodes.takeStream(node)?.leave(shuttingDown(streams, this.#options.random));
    }
  }

  /** What is remembered of a node, unless another replica has held it since: then only the record knows how it fared. */
  #current({ nodeId, epoch, previous }: OpenedSession): HeldNode | undefined {
    const node = this.nodes.find(nodeId);
    if (node === undefined) return undefined;
    if (previous.replicaId === this.instance && epoch === node.epoch + 1) return node;
    this.#lose(node, superseded(nodeId, this.#options.random));
    return undefined;
  }

  #hold(row: Pick<RecordedNode, "nodeId" | "detectedHealth" | "connection">): HeldNode {
    const node = createHeldNode(row, (held) => this.silence.watch(held, held.health.state));
    this.nodes.add(node);
    return node;
  }

  #declare({ watch, to, silentMs }: Due<HeldNode>): void {
    const node = watch.subject;
    node.health = healthAfter({ kind: "silence", to, silentMs }, this.#now());
    this.#options.onChanged(node);
    const stream = this.nodes.takeStream(node);
    if (stream === null) return;
    this.#disconnect(node, { reason: "STREAM_STALE", message: "its stream fell silent" });
    stream.leave(stale(node.id, silentMs));
  }

  #applyTo(node: HeldNode, event: StoredEvent): void {
    const effect = effectOf(event, this.#actor);
    switch (effect.kind) {
      case "membership":
        node.membership = effect.membership;
        this.#tellMembership(node, effect.membership);
        break;
      case "removed":
        this.#lose(node, deleted(node.id, effect.by));
        break;
      case "moved":
        this.notOurs(node);
        break;
      case "mark":
        node.maybeMarked = true;
        break;
      case "info":
        node.infoDigest = effect.digest;
        break;
      case "labels":
        this.#options.onLabelsChanged(node);
        break;
      case "none":
        break;
    }
  }

  #tellMembership(node: HeldNode, membership: Membership): void {
    if (membership.state !== "REJECTED") {
      node.stream?.sendMembership(membership);
      return;
    }
    const stream = this.nodes.takeStream(node);
    if (stream === null) return;
    this.#disconnect(node, { reason: "NODE_REJECTED", message: "the node was rejected" });
    stream.leave(rejected(node.id, membership, this.#options.random));
  }

  /** @param why absent for a stream whose end nobody explained. */
  #disconnect(node: HeldNode, why?: { readonly reason: string; readonly message: string }): void {
    node.connection = { ...connectionAfter("broken", this.#now()), ...why };
    this.#options.onChanged(node);
  }

  #lose(node: HeldNode, farewell: Farewell): void {
    this.silence.unwatch(node);
    this.nodes.remove(node)?.leave(farewell);
  }

  #now(): { readonly actor: string; readonly atMs: number } {
    return { actor: this.#actor, atMs: this.#options.clock.wallMs() };
  }
}
