import type { Interceptor } from "@connectrpc/connect";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { describeError } from "@rollcall/errors";
import { REPLICA_CREDENTIALS_TTL_MS, signReplicaCall } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { connectPeer, type PeerTls } from "@rollcall/rpc";
import { listHealthReplicas, type ReservedStore } from "@rollcall/store";
import { type PeerPlace, Peers } from "./peers.ts";

export interface ConnectPeersOptions {
  readonly store: Pick<ReservedStore, "db" | "clusterSecret">;
  /** See PeersOptions. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** See HealthProcess. */
  readonly peerTls?: PeerTls | null;
}

/** Timeout of a unary call to a peer, in milliseconds. */
const PEER_TIMEOUT_MS = 1_500;

/** Connect to the other replicas, as listed in the store. Each call is signed. */
export function connectPeers(options: ConnectPeersOptions): Peers {
  const { store, instance, clock, peerTls = null } = options;
  return new Peers({
    ...{ instance, clock },
    list: () => listHealthReplicas(store.db),
    connect: (place) => {
      const interceptors = [signedCalls(place, options)];
      const { address } = place;
      const connection = connectPeer({ address, tls: peerTls, interceptors, timeoutMs: PEER_TIMEOUT_MS });
      return { client: connection.client(HealthInternalService), close: () => connection.close() };
    },
  });
}

/**
 * Signs each call. If the peer refuses a signature because its clock differs, signs again with the peer's
 * time, so that a clock that jumped does not interrupt calls.
 */
function signedCalls({ instance: to, onDoubt }: PeerPlace, options: ConnectPeersOptions): Interceptor {
  const { store, instance: from, clock, log } = options;
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
        // The clock is not the cause of the refusal, so another replica probably has this address now.
        onDoubt();
        throw error;
      }
      aheadMs = differenceMs;
      log.warn({ replica: to, ahead_ms: Math.round(aheadMs) }, "the clocks of two replicas differ");
      return await send();
    }
  };
}
