import { reconnectWindow } from "@rollcall/domain";
import type { PeerList } from "../internal/peers.ts";

export interface ReconnectsOptions {
  readonly instance: string;
  readonly peers: Pick<PeerList, "replicas" | "otherEndpoints">;
  /** How many hellos one replica admits. */
  readonly hellosPerSecond: number;
  /** The shortest time after which an absent node is judged. */
  readonly unhealthyAfterMs: number;
}

/** Where agents go when this replica sends them away, and over how long they are spread. */
export class Reconnects {
  readonly #options: ReconnectsOptions;

  constructor(options: ReconnectsOptions) {
    this.#options = options;
  }

  /** How many other replicas are known to admit agents. */
  get others(): number {
    const { peers, instance } = this.#options;
    return peers.replicas.filter((it) => it.instance !== instance).length;
  }

  /** The addresses of the others. */
  get endpoints(): readonly string[] {
    return this.#options.peers.otherEndpoints;
  }

  /** The addresses of all replicas, this one among them. */
  get all(): readonly string[] {
    const { replicas } = this.#options.peers;
    return [...new Set(replicas.map(({ agentEndpoint }) => agentEndpoint))];
  }

  /** Over how long so many agents are spread, in milliseconds; at most half of the time for which they may be away. */
  windowMs(agents: number): number {
    const { hellosPerSecond, unhealthyAfterMs } = this.#options;
    const windowMs = reconnectWindow({ agents, replicas: this.others, hellosPerSecond });
    return Math.min(windowMs, unhealthyAfterMs / 2);
  }
}
