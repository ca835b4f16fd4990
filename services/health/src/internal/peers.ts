import type { Client, Interceptor } from "@connectrpc/connect";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { describeError, isStoreUnavailable } from "@rollcall/errors";
import { REPLICA_CREDENTIALS_TTL_MS, signReplicaCall } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { connectPeer, type PeerConnection, type PeerTls } from "@rollcall/rpc";
import { type LiveReplica, listHealthReplicas, type ReservedStore } from "@rollcall/store";

export interface PeersOptions {
  readonly store: Pick<ReservedStore, "lane" | "db" | "clusterSecret">;
  /** The own instance, which is nobody's peer. */
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

/** The other replicas, as far as those need them that adopt and move nodes. See Peers. */
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
/** A replica whose lease has run out may still live, and is asked before its nodes are judged. */
const REMEMBERED_MS = 10 * 60_000;

/** The other health replicas, as the record lists them: one connection each, opened when it is needed. */
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

  /** The replica with this instance; null when the record does not know how to reach it, or when it is this one. */
  async find(instance: string): Promise<Peer | null> {
    const isListed = this.#listed.has(instance);
    // One that is not listed may have come this moment.
    await this.refresh(isListed ? LIST_AGE_MS : 0);
    return this.#listed.has(instance) ? this.remembered(instance) : null;
  }

  /** Every other replica that holds its lease. */
  async all(): Promise<readonly Peer[]> {
    await this.refresh();
    return this.known();
  }

  /** Those that were listed when the record was last read, however long ago. */
  known(): readonly Peer[] {
    return [...this.#listed].flatMap((instance) => this.remembered(instance) ?? []);
  }

  /** Every replica that takes agents, this one among them, as they were last listed. */
  get replicas(): readonly LiveReplica[] {
    return this.#replicas;
  }

  /** The addresses of all others that take agents, each once, as they were last listed. */
  get otherEndpoints(): readonly string[] {
    const others = this.#replicas.filter(({ instance }) => instance !== this.#options.instance);
    return [...new Set(others.map(({ agentEndpoint }) => agentEndpoint))];
  }

  /** A replica as it was last listed, even when its lease has run out since; null when it was not, for ten minutes. */
  remembered(instance: string): Peer | null {
    const known = this.#known.get(instance);
    return known === undefined ? null : { instance, client: known.client };
  }

  /** Read the list again when it is older than this. While the record is away, what was read last counts. */
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

  /**
   * At an address there is one replica: one that was known there before this one does not answer any more, but its
   * successor would.
   */
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

  /**
   * Signs each call, by the other side's clock once that turned out to differ: nothing here may depend on one that
   * jumped.
   */
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
          // It is no question of time: another replica is there by now. Who is where is read again before the next
          // call.
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
