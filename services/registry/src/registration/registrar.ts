import { Batcher, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/runtime";
import type { RegistryDeps } from "../deps.ts";
import { type RegistrationAnswer, registerBatch } from "./register-batch.ts";
import type { Registration } from "./registration.ts";

/** Takes registrations one by one and carries them out in batches. */
export interface Registrar {
  /** Decide one registration. Rejects with OVERLOADED when too many wait, STORE_UNAVAILABLE when the record is away. */
  register(registration: Registration): Promise<RegistrationAnswer>;
  /** Take no more, and resolve when those that wait are done. */
  close(): Promise<void>;
}

// One more round trip is shared by so many; beyond it a transaction holds the log's lock for longer than it saves.
const MOST_IN_ONE_BATCH = 200;
// A lone registration waits for so long in vain: far less than the commit takes.
const WAIT_FOR_COMPANY_MS = 2;

/** Create the registrar of one registry. */
export function createRegistrar(deps: RegistryDeps): Registrar {
  const sizes = histogram(deps.metrics, {
    name: "rollcall_registration_batch_size",
    help: "Registrations that shared one transaction.",
    buckets: [1, 2, 5, 10, 20, 50, 100, MOST_IN_ONE_BATCH],
  });
  const batcher = new Batcher<Registration, RegistrationAnswer>({
    run: (batch) => {
      sizes.observe(batch.length);
      return registerBatch(deps, batch);
    },
    maxItems: MOST_IN_ONE_BATCH,
    maxWaitMs: WAIT_FOR_COMPANY_MS,
    maxQueued: deps.config["Registry.RegistrationQueue"],
    clock: deps.clock,
  });
  exposeQueue(deps.metrics, () => batcher.queued);
  return {
    register: (registration) => batcher.submit(registration),
    close: () => batcher.close(),
  };
}

function exposeQueue(metrics: MetricsRegistry, length: () => number): void {
  const queued = gauge(metrics, {
    name: "rollcall_registrations_queued",
    help: "Registrations that wait for the record.",
  });
  onScrape(metrics, () => queued.set(length()));
}
