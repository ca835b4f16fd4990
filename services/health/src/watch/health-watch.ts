import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Health } from "@rollcall/domain";
import { describeError, isStoreUnavailable } from "@rollcall/errors";
import { type Clock, type Logger, WakeUp } from "@rollcall/process";
import { type CallStore, ownersAfter, ownersOf, type SessionOwner } from "@rollcall/store";
import { healthToProto } from "@rollcall/wire";
import { recordToProto } from "../convert.ts";
import type { Peers } from "../internal/peers.ts";
import { readRecords, type StoredHealth } from "../query/read-stored-health.ts";
import type { LiveView } from "../replica/live-view.ts";
import { Mailbox } from "./mailbox.ts";
import { type LiveChanges, watchHeld } from "./watch-live.ts";

export interface HealthWatchesOptions {
  readonly store: Pick<CallStore, "lane" | "db">;
  readonly replica: LiveView;
  readonly peers: Peers;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The nodes of one watch. */
export interface WatchedSelection {
  /** The nodes to watch; empty for the first 200 nodes that have an owner, in the order of ids. */
  readonly nodeIds: readonly string[];
  /** Whether the first message about each node carries its samples. */
  readonly includeSamples: boolean;
  readonly signal: AbortSignal;
}

/** Maximum number of nodes in one watch. */
const MOST_NODES = 200;
/** How long to wait for an event before reading the owners from the store. */
const ROUTE_EVERY_MS = 5_000;
/** The shortest pause between two reads of the owners. */
export const ROUTE_PAUSE_MS = 250;

/** The part of a watch that one replica serves. */
interface Link {
  readonly ids: ReadonlySet<string>;
  readonly ending: AbortController;
  isBroken: boolean;
}

/** One watch: follows each node to the replica that holds it, and puts changes into a mailbox. */
export class HealthWatch {
  readonly box = new Mailbox<NodeHealth>();
  /** Why the watch failed; null while it runs. */
  failure: unknown = null;
  readonly #options: HealthWatchesOptions;
  readonly #selection: WatchedSelection;
  readonly #ending = new AbortController();
  readonly #signal: AbortSignal;
  readonly #links = new Map<string, Link>();
  readonly #wakeUp = new WakeUp();
  /** Ids of the nodes that the watch shows. */
  readonly #shown = new Set<string>();
  /** Nodes that were reported as gone. */
  readonly #gone = new Set<string>();
  /** The health of nodes that carry an operator's mark. */
  #marked: ReadonlyMap<string, Health> = new Map();

  constructor(options: HealthWatchesOptions, selection: WatchedSelection) {
    this.#options = options;
    this.#selection = selection;
    this.#signal = AbortSignal.any([selection.signal, this.#ending.signal]);
  }

  /** Called when a node's owner or mark may have changed. */
  doubt(nodeId: string): void {
    const { nodeIds } = this.#selection;
    const isWatched = this.#shown.has(nodeId) || nodeIds.length === 0 || nodeIds.includes(nodeId);
    if (isWatched) this.#wakeUp.call();
  }

  /** Follow the nodes until the watch ends. An error is stored in `failure`. */
  async follow(): Promise<void> {
    const { clock } = this.#options;
    try {
      for (;;) {
        await this.#route();
        await this.#wakeUp.rest(clock, { atMostMs: ROUTE_EVERY_MS }, this.#signal);
        await clock.sleep(ROUTE_PAUSE_MS, this.#signal);
      }
    } catch (error) {
      this.failure ??= error;
      this.box.touch();
    } finally {
      for (const { ending } of this.#links.values()) ending.abort(new Error("the watch has ended"));
    }
  }

  end(): void {
    this.#ending.abort(new Error("the watch has ended"));
  }

  async #route(): Promise<void> {
    const { store, log } = this.#options;
    const { nodeIds } = this.#selection;
    try {
      const owners =
        nodeIds.length === 0 ? await ownersAfter(store.db, "", MOST_NODES) : await ownersOf(store.db, nodeIds);
      const marked = await this.#records(owners.filter((it) => it.marked));
      this.#showMarks(new Map(marked.map(({ id, health }) => [id, health])));
      this.#dropAllBut(new Set(owners.map(({ nodeId }) => nodeId)));
      await this.#link(owners);
    } catch (err) {
      if (!isStoreUnavailable(err)) throw err;
      // Existing links continue; new owners are read when the store is available again.
      log.debug({ err }, "owners cannot be read");
    }
  }

  /** Show new and cleared marks, because they change a node's health without a frame from the node. */
  #showMarks(marked: ReadonlyMap<string, Health>): void {
    const before = this.#marked;
    this.#marked = marked;
    const changed = [...new Set([...before.keys(), ...marked.keys()])].filter(
      (id) => before.get(id)?.sinceMs !== marked.get(id)?.sinceMs,
    );
    // End these links, because a replica sends the current state of its nodes when asked again.
    for (const [replicaId, { ids, ending }] of this.#links) {
      if (!changed.some((id) => ids.has(id))) continue;
      ending.abort(new Error("ask again"));
      this.#links.delete(replicaId);
    }
  }

  #dropAllBut(ids: ReadonlySet<string>): void {
    const { nodeIds } = this.#selection;
    for (const id of new Set([...this.#shown, ...nodeIds])) {
      if (ids.has(id) || this.#gone.has(id)) continue;
      this.#shown.delete(id);
      this.#gone.add(id);
      this.box.drop(id);
    }
    for (const id of ids) {
      this.#shown.add(id);
      this.#gone.delete(id);
    }
  }

  async #link(owners: readonly SessionOwner[]): Promise<void> {
    const wanted = new Map<string, Set<string>>();
    for (const { nodeId, replicaId } of owners) {
      const ids = wanted.get(replicaId) ?? new Set();
      wanted.set(replicaId, ids.add(nodeId));
    }
    for (const [replicaId, link] of this.#links) {
      const ids = wanted.get(replicaId);
      if (ids !== undefined && !link.isBroken && isSame(ids, link.ids)) {
        wanted.delete(replicaId);
        continue;
      }
      link.ending.abort(new Error("other replicas hold the nodes now"));
      this.#links.delete(replicaId);
    }
    for (const [replicaId, ids] of wanted) await this.#open(replicaId, ids);
  }

  async #open(replicaId: string, ids: ReadonlySet<string>): Promise<void> {
    const ending = new AbortController();
    const signal = AbortSignal.any([ending.signal, this.#signal]);
    const link = { ids, ending, isBroken: false };
    this.#links.set(replicaId, link);
    const news = await this.#news(replicaId, [...ids], signal);
    if (news === null) {
      await this.#breakLink(link, `replica ${replicaId} is gone`);
      return;
    }
    this.#read(link, news).catch(async (error: unknown) => {
      if (signal.aborted) return;
      const { reason = "no answer" } = describeError(error);
      await this.#breakLink(link, `replica ${replicaId} does not answer (${reason})`);
    });
  }

  async #news(replicaId: string, nodeIds: string[], signal: AbortSignal): Promise<AsyncIterable<LiveChanges> | null> {
    const { replica, clock, peers } = this.#options;
    const { includeSamples } = this.#selection;
    if (replicaId === replica.instance) {
      return watchHeld({ replica, clock, nodeIds, includeSamples, signal });
    }
    const peer = await peers.find(replicaId);
    // A timeout of 0 means that the watch has no deadline.
    const options = { signal, timeoutMs: 0 };
    return peer?.client.watchLiveNodes({ nodeIds, includeSamples }, options) ?? null;
  }

  async #read(link: Link, news: AsyncIterable<LiveChanges>): Promise<void> {
    for await (const { nodes, releasedIds } of news) {
      if (link.ending.signal.aborted) return;
      for (const node of nodes) this.#show(node);
      if (releasedIds.length === 0) continue;
      link.isBroken = true;
      await this.#showRecords(releasedIds, "the node is being moved to another replica");
      this.#wakeUp.call();
    }
    throw new Error("the watch was ended by its replica");
  }

  #show(node: NodeHealth): void {
    const marked = this.#marked.get(node.nodeId);
    if (marked !== undefined) node.health = healthToProto(marked);
    if (!this.#shown.has(node.nodeId)) return;
    const waiting = this.box.peek(node.nodeId);
    // Keep the samples of the node's first message, because that message has not been sent yet.
    if (waiting !== undefined && node.samples.length === 0) node.samples = waiting.samples;
    this.box.put(node.nodeId, node);
  }

  /** Show the stored state of the nodes until their owners are known. */
  async #breakLink(link: Link, why: string): Promise<void> {
    link.isBroken = true;
    await this.#showRecords([...link.ids], why);
  }

  async #showRecords(ids: readonly string[], why: string): Promise<void> {
    try {
      const records = await this.#records(ids.map((nodeId) => ({ nodeId })));
      for (const record of records) this.#show(recordToProto(record, why));
    } catch (err) {
      this.#options.log.debug({ err }, "the database cannot be read either");
    }
  }

  async #records(nodes: readonly { readonly nodeId: string }[]): Promise<readonly StoredHealth[]> {
    const ids = nodes.map(({ nodeId }) => nodeId);
    return readRecords(this.#options.store.db, ids);
  }
}

function isSame(left: ReadonlySet<string>, right: ReadonlySet<string>): boolean {
  return left.size === right.size && [...left].every((id) => right.has(id));
}
