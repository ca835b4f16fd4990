import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type Address, formatAddress, parseAddress } from "@rollcall/config";
import { type MembershipState, proofText, type RotationAnswer } from "@rollcall/domain";
import { type NodeKeyPair, signProof } from "@rollcall/identity";
import { membershipStateFromProto } from "@rollcall/wire";
import type { Reach } from "../network/reach.ts";
import { connectByProxy, secureTunnel } from "../network/tunnel.ts";

/** The node to register, and how. */
export interface Registration {
  readonly nodeId: string;
  readonly keyPair: NodeKeyPair;
  readonly info: NodeInfo;
  /** A join token; empty for none. Never logged. */
  readonly joinToken: string;
}

/** The result of a registration. */
export interface Registered {
  readonly clusterId: string;
  /** Where health replicas accept streams, HOST:PORT. Can be empty while there is no replica. */
  readonly healthEndpoints: readonly string[];
  /** The node's membership; absent if the server is newer and returns a state that this agent does not know. */
  readonly membership: MembershipState | undefined;
  /** Whether the node was new. */
  readonly created: boolean;
}

/** An offer of the key that the node will prove its identity with. */
export interface KeyOffer {
  readonly nodeId: string;
  /** The key that signs the offer. */
  readonly keyPair: NodeKeyPair;
  readonly next: NodeKeyPair;
}

/** Registers the node, and rotates its key. */
export interface Registrar {
  /** Register. Rejects with a ConnectError if it is refused or the registry cannot be reached. */
  register(registration: Registration, signal: AbortSignal): Promise<Registered>;
  /** Offer the next key. Rejects for the same reasons as `register`. */
  rotateKey(offer: KeyOffer, signal: AbortSignal): Promise<RotationAnswer>;
  /** Complete health endpoints as servers return them, see `resolveEndpoints`. */
  resolve(endpoints: readonly string[]): readonly string[];
}

/** The time limit for each call of a registration. */
const CALL_TIMEOUT_MS = 10_000;

/**
 * Create the registrar for a registry's address, in clear text or over TLS. It keeps no connection between
 * registrations.
 */
export function createRegistrar(server: Address, reach: Reach = {}): Registrar {
  const { tls = null, proxyTo, prepare, onFailure } = reach;
  const baseUrl = `${tls === null ? "http" : "https"}://${formatAddress(server)}`;
  const connected = async <T>(signal: AbortSignal, call: (client: RegistryClient) => Promise<T>): Promise<T> => {
    await prepare?.(signal);
    const proxy = proxyTo?.(server) ?? null;
    const tunnel = proxy && (await connectByProxy({ proxy, target: server }, signal));
    const byTunnel = tunnel && {
      createConnection: () => (tls === null ? tunnel : secureTunnel(tunnel, server, tls())),
    };
    const sessionManager = new Http2SessionManager(baseUrl, undefined, byTunnel ?? tls?.());
    try {
      const transport = createGrpcTransport({ baseUrl, sessionManager });
      return await call(createClient(RegistryService, transport));
    } catch (error) {
      onFailure?.(error);
      throw error;
    } finally {
      // Close the session, because it would keep the process from exiting, and the next registration may be days
      // away.
      sessionManager.abort();
      tunnel?.destroy();
    }
  };
  return {
    register: (registration, signal) =>
      connected(signal, (client) => registerOver(client, registration, { server, signal })),
    rotateKey: (offer, signal) => connected(signal, (client) => rotateOver(client, offer, signal)),
    resolve: (endpoints) => resolveEndpoints(endpoints, server),
  };
}

async function registerOver(
  client: RegistryClient,
  { nodeId, keyPair, info, joinToken }: Registration,
  { server, signal }: { readonly server: Address; readonly signal: AbortSignal },
): Promise<Registered> {
  const options = { signal, timeoutMs: CALL_TIMEOUT_MS };
  const challenge = await client.createChallenge({}, options);
  const text = proofText({
    method: REGISTER_METHOD,
    clusterId: challenge.clusterId,
    nodeId,
    nonce: challenge.nonce,
  });
  const answer = await client.registerNode(
    {
      nodeId,
      publicKey: keyPair.publicKey,
      proof: { nonce: challenge.nonce, signature: signProof(keyPair.privateKey, text) },
      info,
      joinToken,
    },
    options,
  );
  const membership = answer.node?.membership?.state;
  return {
    clusterId: answer.clusterId,
    healthEndpoints: resolveEndpoints(answer.healthEndpoints, server),
    membership: membership === undefined ? undefined : membershipStateFromProto(membership),
    created: answer.created,
  };
}

async function rotateOver(
  client: RegistryClient,
  { nodeId, keyPair, next }: KeyOffer,
  signal: AbortSignal,
): Promise<RotationAnswer> {
  const options = { signal, timeoutMs: CALL_TIMEOUT_MS };
  const { nonce, clusterId } = await client.createChallenge({}, options);
  const text = proofText({ method: ROTATE_METHOD, clusterId, nodeId, nonce });
  const answer = await client.rotateNodeKey(
    {
      nodeId,
      proof: { nonce, signature: signProof(keyPair.privateKey, text) },
      nextPublicKey: next.publicKey,
      nextSignature: signProof(next.privateKey, text),
    },
    options,
  );
  return { current: answer.keyFingerprint, next: answer.nextKeyFingerprint || null };
}

type RegistryClient = Client<typeof RegistryService>;

const ROTATE_METHOD = `/${RegistryService.typeName}/${RegistryService.method.rotateNodeKey.name}`;
const REGISTER_METHOD = `/${RegistryService.typeName}/${RegistryService.method.registerNode.name}`;

/**
 * Complete the endpoints that a registration returned: an empty host (":7701") stands for the host at which the
 * agent reached the registry. Invalid addresses and duplicates are dropped.
 */
export function resolveEndpoints(endpoints: readonly string[], server: Address): readonly string[] {
  const resolved = endpoints.flatMap((endpoint) => {
    const [, port] = /^:(\d{1,5})$/.exec(endpoint) ?? [];
    const whole = port === undefined ? endpoint : formatAddress({ host: server.host, port: Number(port) });
    const address = parseAddress(whole);
    return address === null || address.port === 0 ? [] : [formatAddress(address)];
  });
  return [...new Set(resolved)];
}
