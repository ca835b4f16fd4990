/** The client for browsers. Calls go to the server that served the page, or to a configured one. */
import { createConnectTransport } from "@connectrpc/connect-web";
import { callingTransport } from "./calls.ts";
import { ApiClient, type CallingOptions, DEFAULT_TIMEOUT_MS } from "./client.ts";
import { DEFAULT_RETRY } from "./retry.ts";
import { SeenRevision } from "./seen-revision.ts";

export * from "./exports.ts";

/** The address of the control plane, and the credentials. */
export interface ClientOptions extends CallingOptions {
  /**
   * The URL that serves all services. Default: the origin of the page. A server responds only to pages
   * that it served.
   */
  readonly server?: string;
  /** The access token, or a function that returns it for each attempt. Default: no token. */
  readonly token?: string | (() => string | null | Promise<string | null>);
  /** The function that makes requests. Default: the page's `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** The API of one control plane, for browsers. */
export class Client extends ApiClient {
  constructor(options: ClientOptions = {}) {
    const transport = transportOf(options);
    super({ registry: transport, health: transport, admin: transport, scheduler: transport });
  }
}

function transportOf({ server, token, fetch, timeoutMs = DEFAULT_TIMEOUT_MS, retry = {} }: ClientOptions) {
  const transport = createConnectTransport({
    baseUrl: server ?? globalThis.location.origin,
    useBinaryFormat: true,
    ...(fetch === undefined ? {} : { fetch }),
  });
  // The browser manages the connections, so a page cannot replace one.
  const path = { transport, replace: () => {}, release: () => {} };
  return callingTransport({
    connect: () => Promise.resolve(path),
    token: async () => (typeof token === "function" ? await token() : (token ?? null)),
    timeoutMs,
    retry: { ...DEFAULT_RETRY, ...retry },
    seen: new SeenRevision(),
  });
}
