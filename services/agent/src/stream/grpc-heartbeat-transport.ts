import { isIP, type Socket } from "node:net";
import { checkServerIdentity, createSecureContext } from "node:tls";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ChannelCredentials, type ChannelOptions, Client, credentials, status } from "@grpc/grpc-js";
import {
  HealthService,
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
  type ServeLogsRequest,
  ServeLogsRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { formatAddress, parseAddress } from "@rollcall/config";
import type { AgentTls } from "../agent-tls.ts";
import type { Reach } from "../network/reach.ts";
import { openTunnel } from "../network/tunnel.ts";
import type { OutputCall } from "../work/send-output.ts";
import type { HeartbeatStream, HeartbeatTransport, StreamListener } from "./heartbeat-transport.ts";
import { HEARTBEAT_METHOD } from "./hello.ts";

const SERVE_LOGS_METHOD = `/${HealthService.typeName}/${HealthService.method.serveLogs.name}`;

const CHANNEL_OPTIONS: ChannelOptions = {
  // Do not share connections between channels, because an agent that leaves a dead connection needs a new one.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_retries": 0,
  "grpc.max_receive_message_length": 1024 * 1024,
  // Ignore the environment, because Compute.Proxy selects the proxy for streams, as it does for registrations.
  "grpc.enable_http_proxy": 0,
};

type Connector = ReturnType<ChannelCredentials["_createSecureConnector"]>;

/** Create the transport over grpc-js, in clear text or over TLS. */
export function createGrpcHeartbeatTransport(reach: Reach = {}): HeartbeatTransport {
  return {
    open: (endpoint, listener) => {
      try {
        const secured: Secured = { peerChain: [] };
        const { onFailure } = reach;
        return openStream(createClient(endpoint, reach, secured), secured, {
          onFrame: (response) => listener.onFrame(response),
          onEnd: (error) => {
            if (error !== undefined) onFailure?.(error);
            listener.onEnd(error);
          },
        });
      } catch (error) {
        // Treat an invalid endpoint and an unreadable certificate as an unreachable endpoint.
        setImmediate(() => listener.onEnd(error));
        return { peerChain: [], send: () => {}, finish: () => {}, openOutput: () => ENDED_CALL, cancel: () => {} };
      }
    },
  };
}

/** Facts about a connection whose handshake is verified. */
interface Secured {
  peerChain: readonly Uint8Array[];
}

function createClient(endpoint: string, { tls = null, proxyTo }: Reach, connection: Secured): Client {
  const target = parseAddress(endpoint);
  const own = tls === null ? null : secured(tls, target?.host ?? "", connection);
  const direct = own?.credentials ?? credentials.createInsecure();
  const options = { ...CHANNEL_OPTIONS, ...own?.options };
  const proxy = target && (proxyTo?.(target) ?? null);
  if (target === null || proxy === null) return new Client(endpoint, direct, options);
  const proxied = new ProxiedCredentials(direct, (socket) => openTunnel(socket, { proxy, target }));
  return new Client(formatAddress(proxy), proxied, { ...options, "grpc.default_authority": endpoint });
}

/** Credentials that check the server's name once its chain is verified, and then record the chain. */
function secured(tls: AgentTls, host: string, connection: Secured) {
  const { servername, ...pems } = tls();
  const expected = servername ?? host;
  // TLS does not allow an IP address as the requested server name, and Node.js warns about it. checkServerIdentity()
  // still compares the certificate with the address.
  const asked = servername ?? (isIP(host) === 0 ? host : "localhost");
  return {
    credentials: credentials.createFromSecureContext(createSecureContext({ ...pems, minVersion: "TLSv1.2" }), {
      checkServerIdentity: (_, certificate) => {
        const problem = checkServerIdentity(expected, certificate);
        if (problem === undefined) connection.peerChain = chainOf(certificate);
        return problem;
      },
    }),
    options: { "grpc.ssl_target_name_override": asked },
  };
}

/** The maximum number of certificates to read. Real chains are shorter. */
const MOST_CHAIN = 10;

/** A certificate as Node.js passes it to grpc-js. The type that grpc-js declares has fewer fields. */
interface ShownCertificate {
  readonly raw: Uint8Array;
  readonly issuerCertificate?: ShownCertificate;
}

function chainOf(certificate: ShownCertificate): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  let next: ShownCertificate | undefined = certificate;
  while (next?.raw !== undefined && chain.length < MOST_CHAIN) {
    chain.push(next.raw);
    // Stop at a root, which is its own issuer.
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  return chain;
}

function openStream(client: Client, connection: Readonly<Secured>, listener: StreamListener): HeartbeatStream {
  const call = client.makeBidiStreamRequest<HeartbeatRequest, HeartbeatResponse>(
    HEARTBEAT_METHOD,
    (request) => Buffer.from(toBinary(HeartbeatRequestSchema, request)),
    (bytes) => fromBinary(HeartbeatResponseSchema, bytes),
  );
  let ended = false;
  let failure: unknown;
  call.on("data", (response: HeartbeatResponse) => listener.onFrame(response));
  call.on("error", (error) => {
    failure = error;
  });
  call.on("status", ({ code, details }) => {
    ended = true;
    // Handle the end later, because frames that arrived before the status may still be in the stream's buffer.
    setImmediate(() => {
      client.close();
      const unknown = new Error(`the stream ended with status ${code}: ${details}`);
      listener.onEnd(code === status.OK ? undefined : (failure ?? unknown));
    });
  });
  return {
    get peerChain() {
      return connection.peerChain;
    },
    send: (request) => void (ended || call.write(request)),
    finish: () => void (ended || call.end()),
    openOutput: () => (ended ? ENDED_CALL : openOutput(client)),
    cancel: () => call.cancel(),
  };
}

const ENDED_CALL: OutputCall = { send: () => Promise.resolve(false), end: () => {} };

function openOutput(client: Client): OutputCall {
  const call = client.makeClientStreamRequest<ServeLogsRequest, Buffer>(
    SERVE_LOGS_METHOD,
    (request) => Buffer.from(toBinary(ServeLogsRequestSchema, request)),
    (bytes) => bytes,
    () => {},
  );
  const ending = new Promise<false>((resolve) => {
    call.on("status", () => resolve(false));
  });
  // Ignore this error, because the status contains the same one.
  call.on("error", () => {});
  return {
    send: (piece) => {
      const sent = new Promise<true>((resolve) => {
        call.write(create(ServeLogsRequestSchema, piece), () => resolve(true));
      });
      return Promise.race([sent, ending]);
    },
    end: () => call.end(),
  };
}

/**
 * Credentials of a channel that connects to a proxy. They open a tunnel over each connection, and the wrapped
 * credentials secure the traffic in the tunnel. The proxy support of grpc-js is not used, because it reads other
 * variables than registrations do, and reports a proxy's refusal only in the log of the process.
 */
class ProxiedCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials;
  readonly #open: (socket: Socket) => Promise<Socket>;

  constructor(inner: ChannelCredentials, open: (socket: Socket) => Promise<Socket>) {
    super();
    this.#inner = inner;
    this.#open = open;
  }

  override _isSecure(): boolean {
    return this.#inner._isSecure();
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...args: Parameters<ChannelCredentials["_createSecureConnector"]>): Connector {
    const inner = this.#inner._createSecureConnector(...args);
    return {
      connect: async (socket) => inner.connect(await this.#open(socket)),
      waitForReady: () => inner.waitForReady(),
      getCallCredentials: () => inner.getCallCredentials(),
      destroy: () => inner.destroy(),
    };
  }
}
