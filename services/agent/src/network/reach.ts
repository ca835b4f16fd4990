import type { AgentTls } from "../agent-tls.ts";
import type { ProxyRule } from "./proxy.ts";

/** How an agent reaches the servers of its control plane, on every port. */
export interface Reach {
  /** What connections over TLS need; clear text when absent or null. */
  readonly tls?: AgentTls | null;
  /** The proxies on the way. Default: none. */
  readonly proxyTo?: ProxyRule;
  /** Resolves when what TLS trusts is on this machine; it is fetched where it is not. */
  readonly prepare?: (signal: AbortSignal) => Promise<void>;
  /** Called with the error of a connection or call that failed. */
  readonly onFailure?: (error: unknown) => void;
}
