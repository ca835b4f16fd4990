/** The client for Node.js. Without arguments, it finds the control plane as the command line does. */
import { homedir } from "node:os";
import { callingTransport } from "./calls.ts";
import { ApiClient, type CallingOptions, DEFAULT_TIMEOUT_MS, SERVICE_NAMES, type ServiceName } from "./client.ts";
import { Connection } from "./connection.ts";
import { tokenSource } from "./credentials.ts";
import { DEFAULT_RETRY } from "./retry.ts";
import { SeenRevision } from "./seen-revision.ts";
import { resolveTarget, type TargetOptions } from "./target.ts";

export * from "./exports.ts";
export type { TargetOptions } from "./target.ts";

/** The address of the control plane, the credentials, and the settings for calls. */
export interface ClientOptions extends TargetOptions, CallingOptions {}

/** The API of one control plane. Close it when it is no longer needed. */
export class Client extends ApiClient {
  readonly #connections: readonly Connection[];
  /** The address of each service, for example "http://127.0.0.1:7700". */
  readonly addresses: Readonly<Record<ServiceName, string>>;

  /** Create a client. It connects at the first call. Throws ConfigurationError. */
  constructor(options: ClientOptions = {}) {
    const { env } = process;
    const uid = process.geteuid?.() ?? null;
    const target = resolveTarget(options, { env, home: homedir(), cwd: process.cwd(), uid });
    const connections = SERVICE_NAMES.map((name) => [name, new Connection(target[name])] as const);
    const seen = new SeenRevision();
    const transports = connections.map(([name, connection]) => [
      name,
      callingTransport({
        connect: () => connection.acquire(),
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

  /** End every call and connection. Later calls fail. */
  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}
