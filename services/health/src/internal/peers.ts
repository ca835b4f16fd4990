import type { Client, Interceptor } from "@connectrpc/connect";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { describeError, isStoreUnavailable } from "@rollcall/errors";
import { REPLICA_CREDENTIALS_TTL_MS, signReplicaCall } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { connectPeer, type PeerConnection, type PeerTls } from "@rollcall/rpc";
import { type LiveReplica, listHealthReplicas, type ReservedStore } from "@rollcall/store";

export interface PeersOptions {
  readonly store: Pick<ReservedStore, "lane" | "db" | "clusterSecret">;
  /** This process's instance, which is not a peer. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** See HealthProcess. */
  readonly peerTls?: PeerTls | null;
}

/** Another replica that can be asked about itself and about nodes. */
export interface AskedPeer {
  readonly instance: string;
  readonly client: Pick<Client<typeof HealthInternalService>, "probeNodes" | "getReplicaState">;
}

/** The part of Peers that adoption and moves need. */
export interface PeerList {
  readonly replicas: readonly LiveReplica[];
  readonly otherEndpoints: readonly string[];
  known(): readonly AskedPeer[];
  remembered(instance: string): AskedPeer | null;
  refresh(olderThanMs?: number): Promise<void>;
}

/** Another replica that can be asked. */
export interface Peer extends AskedPeer {
  readonly instance: string;
  readonly client: Client<typeof HealthInternalService>;
}

interface Known {
  readonly address: string;
  readonly connection: PeerConnection;
  readonly client: Peer["client"];
  seenAtMs: number;
}

/** The longest a unary call to a peer may take. */
const PEER_TIMEOUT_MS = 1_500;
/** How old the list of replicas may be. */
const LIST_AGE_MS = 2_000;
/** A replica whose lease has run out may still be alive, and is asked before its nodes are judged. */
const REMEMBERED_MS = 10 * 60_000;

/** The other health replicas, as the record lists them: one connection each, opened on demand. */
export class Peers implements PeerList {
  readonly #options: PeersOptions;
  readonly #known = new Map<string, Known>();
  #listed: ReadonlySet<string> = new Set();
  #replicas: readonly LiveReplica[] = [];
  #listedAtMs = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  /** The replica with this instance; null for this one, or when the record has no address of it. */
  async find(instance: string): Promise<Peer | null> {
    const isListed = this.#listed.has(instance);
    // One that is not listed may have just started.
    await this.refresh(isListed ? LIST_AGE_MS : 0);
    return this.#listed.has(instance) ? this.remembered(instance) : null;
  }

  /** Every other replica that holds its lease. */
  async all(): Promise<readonly Peer[]> {
    await this.refresh();
    return this.known();
  }

  /** Those of the last list, however old it is. */
  known(): readonly Peer[] {
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

  /** A replica of the last ten minutes' lists, even if its lease has run out since; null for none. */
  remembered(instance: string): Peer | null {
    const known = this.#known.get(instance);
    return known === undefined ? null : { instance, client: known.client };
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
    for (const { connection } of this.#known.values()) connection.close();
    this.#known.clear();
    this.#listed = new Set();
  }

  async #list(): Promise<void> {
    const { store, instance: own, clock } = this.#options;
    try {
      const replicas = await listHealthReplicas(store.db);
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
    known?.connection.close();
    const connection = connectPeer({
      address,
      tls: this.#options.peerTls ?? null,
      interceptors: [this.#signed(instance)],
      timeoutMs: PEER_TIMEOUT_MS,
    });
    const client = connection.client(HealthInternalService);
    this.#known.set(instance, { address, connection, client, seenAtMs: nowMs });
  }

  /** An address has one replica: forget the previous one there, in whose place its successor would answer. / */
  #forgetReplaced(replicas: readonly LiveReplica[]): void {
    const present = new Map(replicas.map(({ instance, internalAddress }) => [internalAddress, instance]));
    for (const [instance, { address, connection }] of this.#known) {
      if ((present.get(address) ?? instance) === instance) continue;
      connection.close();
      this.#known.delete(instance);
    }
  }

  #forget(beforeMs: number): void {
    for (const [instance, { seenAtMs, connection }] of this.#known) {
      if (seenAtMs >= beforeMs) continue;
      connection.close();
      this.#known.delete(instance);
    }
  }

  /** Signs each call, by the peer's clock once it turned out to differ: a clock that jumped must not matter. / */
  #signed(to: string): Interceptor {
    const { store, instance: from, clock, log } = this.#options;
    let aheadMs = 0;
    return (next) => async (request) => {
      const method = `/${request.service.typeName}/${request.method.name}`;
      const send = () => {
        const wallMs = clock.wallMs() + aheadMs;
        const credentials = signReplicaCall(store.clusterSecret(), { from, to, method }, wallMs);
        request.header.set("authorization", credentials);
        return next(request);
      };
      try {
        return await send();
      } catch (error) {
        const { reason, metadata } = describeError(error);
        const theirsMs = Number(metadata.serverTimeMs);
        if (reason !== "REPLICA_CREDENTIALS_INVALID" || !Number.isFinite(theirsMs)) throw error;
        const differenceMs = theirsMs - clock.wallMs();
        if (Math.abs(differenceMs - aheadMs) < REPLICA_CREDENTIALS_TTL_MS) {
          // Not a matter of time: another replica has this address now. Read the list again before the next call.
          this.#listedAtMs = Number.NEGATIVE_INFINITY;
          throw error;
        }
        aheadMs = differenceMs;
        log.warn({ replica: to, ahead_ms: Math.round(aheadMs) }, "clocks of replicas differ");
        return await send();
      }
    };
  }
}
