import { reasonOf } from "@rollcall/errors";
import { Batcher, counter, gauge, histogram, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { RegistryProcess } from "../registry-process.ts";
import { type RegistrationAnswer, registerBatch } from "./register-batch.ts";
import type { Registration } from "./registration.ts";

/** Takes registrations one by one and carries them out in batches. */
export interface Registrar {
  /** Decide one registration. Rejects with OVERLOADED when too many wait, STORE_UNAVAILABLE when the record is away. */
  register(registration: Registration): Promise<RegistrationAnswer>;
  /** Stop accepting, and resolve when those that wait are done. */
  close(): Promise<void>;
}

// One more round trip is shared by so many; beyond it a transaction holds the log's lock for longer than it saves.
const MOST_IN_ONE_BATCH = 200;
// A lone registration waits for so long in vain: far less than the commit takes.
const WAIT_FOR_COMPANY_MS = 2;
// A batch is some ten statements, whatever its size. Where nodes come one by one, at some hundred a second, they share
// one every 20 ms; a batch that has enough, or comes by itself, waits for nothing of that.
const SPACING_MS = 10;
const LONGEST_SPACING_MS = 20;
const ENOUGH = 50;

/** Create the registrar of one registry. */
export function createRegistrar(services: Omit<RegistryProcess, "feed">): Registrar {
  const sizes = histogram(services.metrics, {
    name: "rollcall_registration_batch_size",
    help: "Registrations that shared one transaction.",
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

/** Count what has to do with join tokens, and name the nodes that joined without one where that is warned of. */
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
    help: "Registrations that wait for the record.",
  });
  onScrape(metrics, () => queued.set(length()));
}
