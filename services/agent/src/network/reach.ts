import type { AgentTls } from "../agent-tls.ts";
import type { ProxyRule } from "./proxy.ts";

/** How an agent reaches the servers of its control plane. */
export interface Reach {
  /** The TLS settings of connections; clear text if absent or null. */
  readonly tls?: AgentTls | null;
  /** The proxies to use. Default: none. */
  readonly proxyTo?: ProxyRule;
  /** Fetches the trusted authorities unless they are already on this machine. */
  readonly prepare?: (signal: AbortSignal) => Promise<void>;
  /** Called with the error of a failed connection or call. */
  readonly onFailure?: (error: unknown) => void;
}
