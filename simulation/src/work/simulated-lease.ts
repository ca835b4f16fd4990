import { type Lease, SCHEDULER_LEASE } from "@rollcall/store";

/** The schedulers' lease, as in the store. */
export class SimulatedLease {
  #lease: Lease | null = null;
  #counter = 0;

  /** The leader; null while the lease is free. */
  get holder(): string | null {
    return this.#lease?.instance ?? null;
  }

  take(instance: string): number | null {
    if (this.#lease !== null && this.#lease.instance !== instance) return null;
    this.#counter += 1;
    this.#lease = {
      ...{ name: SCHEDULER_LEASE, instance, service: "scheduler", address: instance, counter: this.#counter },
    };
    return this.#counter;
  }

  read(): Lease | null {
    return this.#lease;
  }

  renew(instance: string): number | null {
    return this.holder === instance ? this.take(instance) : null;
  }

  expire({ instance, counter }: Lease): boolean {
    if (this.#lease?.instance !== instance || this.#lease.counter !== counter) return false;
    this.#lease = null;
    return true;
  }

  release(instance: string): void {
    if (this.holder === instance) this.#lease = null;
  }
}
