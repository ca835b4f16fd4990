import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Task } from "@rollcall/process";
import type { PolicyTable, ReadyReport } from "@rollcall/rpc";
import { createStoreCheck } from "@rollcall/store";
import type { AdminProcess } from "./admin-process.ts";
import { keepHolds } from "./nodes/keep-holds.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { deliverWebhooks } from "./webhooks/delivery/deliver-webhooks.ts";
import { createWebhookSender } from "./webhooks/delivery/webhook-sender.ts";
import { createSecretSeal } from "./webhooks/seal-secret.ts";

/** Admin, ready to be served on a port. */
export interface AdminApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** Whether the store can be reached. */
  ready(): Promise<ReadyReport>;
  /** Close the connections to webhook receivers. */
  close(): Promise<void>;
}

/**
 * Create admin, the service for operators' decisions. Its methods get only the part of AdminProcess
 * that they need.
 */
export function createApp(services: AdminProcess): AdminApp {
  const { store, clock, log, config, resolve } = services;
  const checkRecord = createStoreCheck(store.reserved, log, clock);
  const webhooks = {
    seal: createSecretSeal(store.clusterSecret(), config["Webhooks.SecretKey"]),
    sender: createWebhookSender({
      clock,
      allowedNetworks: config["Webhooks.AllowedNetworks"],
      authorityFile: config["Webhooks.AuthorityFile"] ?? null,
      timeoutMs: config["Webhooks.Timeout"],
      userAgent: "rollcall",
      ...(resolve === undefined ? {} : { resolve }),
    }),
  };
  const delivery = deliverWebhooks(services, webhooks);
  return {
    routes: createRoutes({ ...services, webhooks }),
    services: SERVICES,
    policies: POLICIES,
    tasks: [keepHolds(services), delivery.task],
    ready: async () => ({ store: await checkRecord(), webhooks: delivery.report() }),
    close: async () => webhooks.sender.close(),
  };
}
