/** The client for browsers: calls go to the server that a page came from, or to one that is named. */
import { createConnectTransport } from "@connectrpc/connect-web";
import { callingTransport } from "./calls.ts";
import { ApiClient, type CallingOptions, DEFAULT_TIMEOUT_MS } from "./client.ts";
import { DEFAULT_RETRY } from "./retry.ts";
import { SeenRevision } from "./seen-revision.ts";

export * from "./exports.ts";

/** Where the control plane is, and who calls. */
export interface ClientOptions extends CallingOptions {
  /** URL of all services. Default: where the page came from. A server answers pages of its own host alone. */
  readonly server?: string;
  /** The access token, or how to get it: called for each attempt. Default: none is sent. */
  readonly token?: string | (() => string | null | Promise<string | null>);
  /** How requests are made. Default: `fetch` of the page. */
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
  // The connections are the browser's: a page cannot replace one.
  const path = { transport, replace: () => {}, release: () => {} };
  return callingTransport({
    connect: () => Promise.resolve(path),
    token: async () => (typeof token === "function" ? await token() : (token ?? null)),
    timeoutMs,
    retry: { ...DEFAULT_RETRY, ...retry },
    seen: new SeenRevision(),
  });
}
