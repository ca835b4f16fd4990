import { type Logger, Loop } from "@rollcall/process";
import { advertise, type HealthReplica, type ReservedStore } from "@rollcall/store";
import type { SharedLoop } from "../record/health-record.ts";

/** Where a replica can be reached, each as HOST:PORT. */
export type Endpoints = Omit<HealthReplica, "instance">;

/** Advertises where this replica can be reached, and again after the lease was lost and taken again. */
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

  /** Advertise these from now on. */
  set(endpoints: Endpoints): void {
    this.#endpoints = endpoints;
    this.#isDue = true;
  }

  /** Advertise again: another replica may have withdrawn the row. */
  repeat(): void {
    this.#isDue = true;
  }

  /** Withdraw the agents' address: registration stops returning it, and no replica moves agents there. */
  async hideFromAgents(): Promise<void> {
    if (this.#endpoints === null) return;
    this.set({ ...this.#endpoints, agentEndpoint: "" });
    await this.turn();
  }

  async turn(): Promise<void> {
    if (this.#endpoints === null || !this.#isDue) return;
    // Cleared first: what is set during the write is due again.
    this.#isDue = false;
    try {
      const replica = { instance: this.#instance, ...this.#endpoints };
      const replicas = await advertise(this.#store.db, replica);
      const fields = { address: replica.internalAddress, replicas };
      if (replicas.length > 0) this.#log.info(fields, "replicas were at this address before");
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
  }
}

/** Advertise whenever it is due. */
export function advertiseTask(advertiser: Advertiser, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "advertise", turn: () => advertiser.turn() });
}
