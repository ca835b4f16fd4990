import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { PolicyTable, ReadyReport, Task } from "@rollcall/runtime";
import { currentRevision } from "@rollcall/store";
import type { AdminDeps } from "./deps.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";

/** Admin, ready to be put behind a port. */
export interface AdminApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** Background work: none yet. */
  readonly tasks: readonly Task[];
  /** Whether the record can be reached. */
  ready(): Promise<ReadyReport>;
  /** Nothing is held open. */
  close(): Promise<void>;
}

/** Create admin: what operators decide about nodes. */
export function createApp(deps: AdminDeps): AdminApp {
  return {
    routes: createRoutes(deps),
    services: SERVICES,
    policies: POLICIES,
    tasks: [],
    ready: async () => ({ store: await checkStore(deps) }),
    close: async () => {},
  };
}

async function checkStore({ store, log }: AdminDeps): Promise<ReadyReport[string]> {
  try {
    const revision = await currentRevision(store.db);
    return { ok: true, message: `at revision ${revision}` };
  } catch (err) {
    log.debug({ err }, "record cannot be reached");
    return { ok: false, message: "the record cannot be reached" };
  }
}
