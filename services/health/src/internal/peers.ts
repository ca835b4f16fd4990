import type { Client } from "@connectrpc/connect";
import type { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { isStoreUnavailable } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import type { LiveReplica } from "@rollcall/store";

/** All that another replica can be asked. */
export type PeerClient = Client<typeof HealthInternalService>;

/** What those ask that adopt and move nodes. */
type AskedClient = Pick<PeerClient, "probeNodes" | "getReplicaState">;

/** Another replica that can be asked. */
export interface Peer<C = PeerClient> {
  readonly instance: string;
  readonly client: C;
}

/** Another replica that can be asked about itself and about nodes. */
export type AskedPeer = Peer<AskedClient>;

/** The part of Peers that adoption and moves need. */
export interface PeerList {
  readonly replicas: readonly LiveReplica[];
  readonly otherEndpoints: readonly string[];
  known(): readonly AskedPeer[];
  remembered(instance: string): AskedPeer | null;
  refresh(olderThanMs?: number): Promise<void>;
}

/** A connection to another replica. */
export interface PeerLink<C> {
  readonly client: C;
  close(): void;
}

/** Where to connect to. */
export interface PeerPlace {
  readonly instance: string;
  readonly address: string;
  /** To be called when another replica seems to be there by now: the list is read again before the next call. */
  readonly onDoubt: () => void;
}

export interface PeersOptions<C> {
  /** The own instance, which is not a peer. */
  readonly instance: string;
  readonly clock: Pick<Clock, "nowMs">;
  /** Read the replicas that hold their lease. */
  readonly list: () => Promise<readonly LiveReplica[]>;
  readonly connect: (place: PeerPlace) => PeerLink<C>;
}

interface Known<C> {
  readonly address: string;
  readonly link: PeerLink<C>;
  seenAtMs: number;
}

/** How old the list of replicas may be. */
const LIST_AGE_MS = 2_000;
/** A replica whose lease has run out may still be alive, and is asked before its nodes are judged. */
const REMEMBERED_MS = 10 * 60_000;

/** The other health replicas, as the record lists them: one connection each, opened when it is needed. */
export class Peers<C extends AskedClient = PeerClient> implements PeerList {
  readonly #options: PeersOptions<C>;
  readonly #known = new Map<string, Known<C>>();
  #listed: ReadonlySet<string> = new Set();
  #replicas: readonly LiveReplica[] = [];
  #listedAtMs = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: PeersOptions<C>) {
    this.#options = options;
  }

  /** The replica with this instance; null when the record does not know how to reach it, or when it is this one. */
  async find(instance: string): Promise<Peer<C> | null> {
    const isListed = this.#listed.has(instance);
    // One that is not listed may have just started.
    await this.refresh(isListed ? LIST_AGE_MS : 0);
    return this.#listed.has(instance) ? this.remembered(instance) : null;
  }

  /** Every other replica that holds its lease. */
  async all(): Promise<readonly Peer<C>[]> {
    await this.refresh();
    return this.known();
  }

  /** Those that were listed when the record was last read, however long ago. */
  known(): readonly Peer<C>[] {
    return [...this.#listed].flatMap((instance) => this.remembered(instance) ?? []);
  }

  /** Every replica that takes agents, this one included, as last listed. */
  get replicas(): readonly LiveReplica[] {
    return this.#replicas;
  }

  /** The distinct addresses of all others that take agents, as last listed. */
  get otherEndpoints(): readonly string[] {
    const others = this.#replicas.filter(({ instance }) => instance !== this.#options.instance);
    return [...new Set(others.map(({ agentEndpoint }) => agentEndpoint))];
  }

  /** A replica as it was last listed, even when its lease has run out since; null when it was not, for ten minutes. */
  remembered(instance: string): Peer<C> | null {
    const known = this.#known.get(instance);
    return known === undefined ? null : { instance, client: known.link.client };
  }

  /** Read the list again when it is older than this. While the record is away, the last list counts. */
  async refresh(olderThanMs = LIST_AGE_MS): Promise<void> {
    if (this.#options.clock.nowMs() - this.#listedAtMs < olderThanMs) return;
    this.#listing ??= this.#list().finally(() => {
      this.#listing = null;
    });
    await this.#listing;
  }

  /** End every connection. */
  close(): void {
    this.#isClosed = true;
    for (const { link } of this.#known.values()) link.close();
    this.#known.clear();
    this.#listed = new Set();
  }

  async #list(): Promise<void> {
    const { instance: own, clock, list } = this.#options;
    try {
      const replicas = await list();
      if (this.#isClosed) return;
      const nowMs = clock.nowMs();
      this.#forgetReplaced(replicas);
      const others = replicas.filter((it) => it.instance !== own && it.internalAddress !== "");
      for (const { instance, internalAddress } of others) {
        this.#learn(instance, internalAddress, nowMs);
      }
      this.#replicas = replicas.filter(({ agentEndpoint }) => agentEndpoint !== "");
      this.#listed = new Set(others.map(({ instance }) => instance));
      this.#listedAtMs = nowMs;
      this.#forget(nowMs - REMEMBERED_MS);
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
    }
  }

  #learn(instance: string, address: string, nowMs: number): void {
    const known = this.#known.get(instance);
    if (known?.address === address) {
      known.seenAtMs = nowMs;
      return;
    }
    known?.link.close();
    const onDoubt = () => {
      this.#listedAtMs = Number.NEGATIVE_INFINITY;
    };
    const link = this.#options.connect({ instance, address, onDoubt });
    this.#known.set(instance, { address, link, seenAtMs: nowMs });
  }

  /** An address has one replica: forget the previous one there, in whose place its successor would answer. */
  #forgetReplaced(replicas: readonly LiveReplica[]): void {
    const present = new Map(replicas.map(({ instance, internalAddress }) => [internalAddress, instance]));
    for (const [instance, { address, link }] of this.#known) {
      if ((present.get(address) ?? instance) === instance) continue;
      link.close();
      this.#known.delete(instance);
    }
  }

  #forget(beforeMs: number): void {
    for (const [instance, { seenAtMs, link }] of this.#known) {
      if (seenAtMs >= beforeMs) continue;
      link.close();
      this.#known.delete(instance);
    }
  }
}
