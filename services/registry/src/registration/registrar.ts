import { reasonOf } from "@rollcall/errors";
import { Batcher, counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { RegistryProcess } from "../registry-process.ts";
import { type RegistrationAnswer, registerBatch } from "./register-batch.ts";
import type { Registration } from "./registration.ts";

/** Accepts registrations one by one and carries them out in batches. */
export interface Registrar {
  /**
   * Carry out one registration. Rejects with OVERLOADED when the queue is full, and STORE_UNAVAILABLE when the store
   * cannot be reached.
   */
  register(registration: Registration): Promise<RegistrationAnswer>;
  /** Stop accepting registrations, and resolve when the queue is empty. */
  close(): Promise<void>;
}

// The maximum batch size. In a larger batch, more registrations would share the round trips, but the transaction would
// hold the event log's lock for so long that the batch would save no time.
const MOST_IN_ONE_BATCH = 200;
// How long a single registration waits for others to share its batch. This is far less than the commit takes.
const WAIT_FOR_COMPANY_MS = 2;
// The minimum time between batches. A batch is about ten statements, whatever its size. Nodes that arrive one by one,
// some hundred a second, share a batch every 20 ms. A large batch or a single registration does not wait.
const SPACING_MS = 10;
const LONGEST_SPACING_MS = 20;
const ENOUGH = 50;

export function createRegistrar(services: Omit<RegistryProcess, "feed">): Registrar {
  const sizes = histogram(services.metrics, {
    name: "rollcall_registration_batch_size",
    help: "Number of registrations in one transaction.",
    buckets: [1, 2, 5, 10, 20, 50, 100, MOST_IN_ONE_BATCH],
  });
  const account = accountFor(services);
  const batcher = new Batcher<Registration, RegistrationAnswer>({
    run: async (batch) => {
      sizes.observe(batch.length);
      const answers = await registerBatch(services, batch);
      for (const answer of answers) account(answer);
      return answers;
    },
    maxItems: MOST_IN_ONE_BATCH,
    maxWaitMs: WAIT_FOR_COMPANY_MS,
    spacingMs: SPACING_MS,
    longestSpacingMs: LONGEST_SPACING_MS,
    enoughItems: ENOUGH,
    maxQueued: services.config["Registry.RegistrationQueue"],
    clock: services.clock,
  });
  exposeQueue(services.metrics, () => batcher.queued);
  return {
    register: (registration) => batcher.submit(registration),
    close: () => batcher.close(),
  };
}

/** Count the results of join tokens. Log nodes that joined without one, if the configuration requests a warning. */
function accountFor({ metrics, log }: Omit<RegistryProcess, "feed">): (answer: RegistrationAnswer) => void {
  const unasked = counter(metrics, {
    name: "rollcall_joined_without_token_total",
    help: "Nodes that joined without a join token while Orchestrator.NodeManager.JoinTokens was warn.",
  });
  const refusals = counter(metrics, {
    name: "rollcall_join_token_refusals_total",
    help: "Registrations refused because of their join token, by reason.",
    labelNames: ["reason"],
  });
  return (answer) => {
    if (!answer.ok) {
      const reason = reasonOf(answer.error);
      if (reason?.startsWith("JOIN_TOKEN_") || reason?.startsWith("SERVICE_ACCOUNT_")) refusals.inc({ reason });
    } else if (answer.created && answer.node.joining.withoutToken) {
      unasked.inc();
      log.warn({ node_id: answer.node.id }, "node joined without a join token");
    }
  };
}

function exposeQueue(metrics: MetricsRegistry, length: () => number): void {
  const queued = gauge(metrics, {
    name: "rollcall_registrations_queued",
    help: "Number of queued registrations.",
  });
  onScrape(metrics, () => queued.set(length()));
}
