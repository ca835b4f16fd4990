import type { Client } from "@connectrpc/connect";
import type { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { isStoreUnavailable } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import type { LiveReplica } from "@rollcall/store";

/** The client for calls to another replica. */
export type PeerClient = Client<typeof HealthInternalService>;

/** The methods that adoption and moves call. */
type AskedClient = Pick<PeerClient, "probeNodes" | "getReplicaState">;

export interface Peer<C = PeerClient> {
  readonly instance: string;
  readonly client: C;
}

/** Another replica, with the calls that adoption and moves make. */
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

/** The replica to connect to. */
export interface PeerPlace {
  readonly instance: string;
  readonly address: string;
  /**
   * Called when the address may belong to another replica now. The list is then read again before the next call.
   */
  readonly onDoubt: () => void;
}

export interface PeersOptions<C> {
  /** This replica's instance, which is not a peer. */
  readonly instance: string;
  readonly clock: Pick<Clock, "nowMs">;
  /** List the replicas that hold their lease. */
  readonly list: () => Promise<readonly LiveReplica[]>;
  readonly connect: (place: PeerPlace) => PeerLink<C>;
}

interface Known<C> {
  readonly address: string;
  readonly link: PeerLink<C>;
  seenAtMs: number;
}

/** Maximum age of the list of replicas. */
const LIST_AGE_MS = 2_000;
/**
 * How long to remember a replica that is no longer listed. Its lease has expired, but the replica may still be
 * alive, so it is asked before its nodes are declared unhealthy.
 */
const REMEMBERED_MS = 10 * 60_000;

/** The other health replicas as listed in the store, with one connection each, opened on demand. */
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

  /**
   * The replica with this instance; null when the store has no address for it, or when the instance is this
   * replica's own.
   */
  async find(instance: string): Promise<Peer<C> | null> {
    const isListed = this.#listed.has(instance);
    // Read the list again for an unknown replica, which may have just started.
    await this.refresh(isListed ? LIST_AGE_MS : 0);
    return this.#listed.has(instance) ? this.remembered(instance) : null;
  }

  /** Every other replica that holds its lease. */
  async all(): Promise<readonly Peer<C>[]> {
    await this.refresh();
    return this.known();
  }

  /** The replicas that were listed when the store was last read, even if that was long ago. */
  known(): readonly Peer<C>[] {
    return [...this.#listed].flatMap((instance) => this.remembered(instance) ?? []);
  }

  /** Every replica that admits agents, including this one, as last listed. */
  get replicas(): readonly LiveReplica[] {
    return this.#replicas;
  }

  /** The distinct addresses of all other replicas that admit agents, as last listed. */
  get otherEndpoints(): readonly string[] {
    const others = this.#replicas.filter(({ instance }) => instance !== this.#options.instance);
    return [...new Set(others.map(({ agentEndpoint }) => agentEndpoint))];
  }

  /**
   * A replica as it was last listed, even if its lease has expired since; null when it has not been listed for ten
   * minutes.
   */
  remembered(instance: string): Peer<C> | null {
    const known = this.#known.get(instance);
    return known === undefined ? null : { instance, client: known.link.client };
  }

  /**
   * Read the list again when it is older than `olderThanMs`. While the store is unavailable, the last list is
   * used.
   */
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

  /**
   * Forget the previous replica at an address. Each address belongs to one replica, so calls would reach its
   * successor.
   */
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
