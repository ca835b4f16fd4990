import { reconnectWindow } from "@rollcall/domain";
import type { PeerList } from "../internal/peers.ts";

export interface ReconnectsOptions {
  readonly instance: string;
  readonly peers: Pick<PeerList, "replicas" | "otherEndpoints">;
  /** Number of Hellos per second that one replica admits. */
  readonly hellosPerSecond: number;
  /** The shortest time after which an absent node is declared UNHEALTHY. */
  readonly unhealthyAfterMs: number;
}

/** Where agents reconnect when this replica sends them away, and over how much time the reconnects are spread. */
export class Reconnects {
  readonly #options: ReconnectsOptions;

  constructor(options: ReconnectsOptions) {
    this.#options = options;
  }

  /** Number of other replicas that are known to admit agents. */
  get others(): number {
    const { peers, instance } = this.#options;
    return peers.replicas.filter((it) => it.instance !== instance).length;
  }

  /** The addresses of the other replicas. */
  get endpoints(): readonly string[] {
    return this.#options.peers.otherEndpoints;
  }

  /** The addresses of all replicas, including this one. */
  get all(): readonly string[] {
    const { replicas } = this.#options.peers;
    return [...new Set(replicas.map(({ agentEndpoint }) => agentEndpoint))];
  }

  /**
   * The time over which to spread the reconnects of this many agents, in milliseconds; at most half of
   * `unhealthyAfterMs`.
   */
  windowMs(agents: number): number {
    const { hellosPerSecond, unhealthyAfterMs } = this.#options;
    const windowMs = reconnectWindow({ agents, replicas: this.others, hellosPerSecond });
    return Math.min(windowMs, unhealthyAfterMs / 2);
  }
}
