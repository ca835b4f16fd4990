import { type Logger, Loop } from "@rollcall/process";
import { advertise, type HealthReplica, type ReservedStore } from "@rollcall/store";
import type { SharedLoop } from "../replica/health-store.ts";

/** The addresses of a replica, each as HOST:PORT. */
export type Endpoints = Omit<HealthReplica, "instance">;

/** Advertises the addresses of this replica, and does so again after the lease was lost and retaken. */
export class Advertiser {
  readonly #store: ReservedStore;
  readonly #instance: string;
  readonly #log: Logger;
  #endpoints: Endpoints | null = null;
  #isDue = false;

  constructor(options: {
    readonly store: ReservedStore;
    readonly instance: string;
    readonly log: Logger;
  }) {
    this.#store = options.store;
    this.#instance = options.instance;
    this.#log = options.log;
  }

  /** Advertise these addresses from now on. */
  set(endpoints: Endpoints): void {
    this.#endpoints = endpoints;
    this.#isDue = true;
  }

  /** Advertise again, because another replica may have withdrawn the row. */
  repeat(): void {
    this.#isDue = true;
  }

  /**
   * Withdraw the agents' address, so that registration stops returning it, and no replica moves agents
   * to this replica.
   */
  async hideFromAgents(): Promise<void> {
    if (this.#endpoints === null) return;
    this.set({ ...this.#endpoints, agentEndpoint: "" });
    await this.turn();
  }

  async turn(): Promise<void> {
    if (this.#endpoints === null || !this.#isDue) return;
    // Clear the flag first, so that a change during the write sets it again.
    this.#isDue = false;
    try {
      const replica = { instance: this.#instance, ...this.#endpoints };
      const replicas = await advertise(this.#store.db, replica);
      const fields = { address: replica.internalAddress, replicas };
      if (replicas.length > 0) this.#log.info(fields, "other replicas had this address before");
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
  }
}

/** Advertise when the loop is called. */
export function advertiseTask(advertiser: Advertiser, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "advertise", turn: () => advertiser.turn() });
}
