import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Task } from "@rollcall/process";
import type { PolicyTable, ReadyReport } from "@rollcall/rpc";
import { createRecordCheck } from "@rollcall/store";
import type { AdminProcess } from "./admin-process.ts";
import { keepHolds } from "./nodes/keep-holds.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";

/** Admin, ready to be put behind a port. */
export interface AdminApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** Whether the record can be reached. */
  ready(): Promise<ReadyReport>;
  /** Nothing is held open. */
  close(): Promise<void>;
}

/** Create admin: what operators decide about nodes. Its methods work with less than the process has. */
export function createApp(services: AdminProcess): AdminApp {
  const checkRecord = createRecordCheck(services.store.reserved, services.log);
  return {
    routes: createRoutes(services),
    services: SERVICES,
    policies: POLICIES,
    tasks: [keepHolds(services)],
    ready: async () => ({ store: await checkRecord() }),
    close: async () => {},
  };
}
