/** The client for Node.js. Without arguments it finds the control plane as the command line does. */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { fetchAuthority } from "./authority.ts";
import { callingTransport } from "./calls.ts";
import {
  ApiClient,
  type CallingOptions,
  DEFAULT_TIMEOUT_MS,
  MOST_MESSAGE_BYTES,
  SERVICE_NAMES,
  type ServiceName,
} from "./client.ts";
import { codeOf } from "./contexts.ts";
import { tokenSource } from "./credentials.ts";
import { ConfigurationError } from "./errors.ts";
import { DEFAULT_RETRY } from "./retry.ts";
import { SeenRevision } from "./seen-revision.ts";
import { resolveTarget, type ServiceTarget, type TargetOptions, type Trust } from "./target.ts";

export * from "./exports.ts";
export type { TargetOptions } from "./target.ts";

/** Where the control plane is, who calls, and how. */
export interface ClientOptions extends TargetOptions, CallingOptions {}

/** The API of one control plane. Close it when it is no longer needed. */
export class Client extends ApiClient {
  readonly #connections: readonly Connection[];
  /** The address of each service, for example "http://127.0.0.1:7700". */
  readonly addresses: Readonly<Record<ServiceName, string>>;

  /** Throws ConfigurationError; the first call connects. */
  constructor(options: ClientOptions = {}) {
    const { env } = process;
    const uid = process.geteuid?.() ?? null;
    const target = resolveTarget(options, { env, home: homedir(), cwd: process.cwd(), uid });
    const connections = SERVICE_NAMES.map((name) => [name, new Connection(target[name])] as const);
    const seen = new SeenRevision();
    const transports = connections.map(([name, connection]) => [
      name,
      callingTransport({
        connect: () => connection.transport(),
        token: tokenSource(target[name].credential),
        timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
        retry: { ...DEFAULT_RETRY, ...options.retry },
        seen,
      }),
    ]);
    super(Object.fromEntries(transports));
    this.#connections = connections.map(([, connection]) => connection);
    this.addresses = Object.fromEntries(SERVICE_NAMES.map((name) => [name, target[name].address.baseUrl])) as Record<
      ServiceName,
      string
    >;
  }

  /** End every call and connection. Calls that are made later fail. */
  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}

/** The connection to one service, which is made at the first call, and again when its files could not be read. */
class Connection {
  readonly #target: ServiceTarget;
  #manager: Http2SessionManager | null = null;
  #transport: Promise<Transport> | null = null;
  #isClosed = false;

  constructor(target: ServiceTarget) {
    this.#target = target;
  }

  transport(): Promise<Transport> {
    if (this.#isClosed) return Promise.reject(new ConfigurationError("the client is closed"));
    this.#transport ??= this.#open().catch((error: unknown) => {
      this.#transport = null;
      throw error;
    });
    return this.#transport;
  }

  close(): void {
    this.#isClosed = true;
    this.#manager?.abort();
  }

  async #open(): Promise<Transport> {
    const { address, trust } = this.#target;
    const tls = address.isTls ? await tlsOptions(this.#target, trust) : {};
    // A path that drops packets is noticed while a stream waits.
    const pings = { pingIntervalMs: 20_000, pingTimeoutMs: 10_000 };
    this.#manager = new Http2SessionManager(address.baseUrl, pings, tls);
    return createGrpcTransport({
      baseUrl: address.baseUrl,
      sessionManager: this.#manager,
      readMaxBytes: MOST_MESSAGE_BYTES,
    });
  }
}

async function tlsOptions({ address }: ServiceTarget, trust: Trust) {
  const { caFile, caFingerprint, serverName, clientCertificate } = trust;
  const read = (file: string) =>
    readFile(file).catch((cause: unknown) => {
      throw new ConfigurationError(`cannot read ${file}: ${codeOf(cause)}`, { cause });
    });
  const ca =
    caFingerprint === null ? caFile && (await read(caFile)) : await fetchAuthority(address, serverName, caFingerprint);
  return {
    ...(ca ? { ca } : {}),
    ...(serverName === null ? {} : { servername: serverName }),
    ...(clientCertificate === null
      ? {}
      : { cert: await read(clientCertificate.certificateFile), key: await read(clientCertificate.keyFile) }),
  };
}
