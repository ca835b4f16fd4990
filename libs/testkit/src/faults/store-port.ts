import type { ReservedStore } from "@rollcall/store";
import type { Ports } from "./faults.ts";

/**
 * Make a store's transactions and its statements outside of them ports. A transaction fails as a whole: before it, or
 * when it has been committed and its response is lost.
 */
export function storePort(ports: Ports, store: ReservedStore): ReservedStore {
  const { change, transaction } = ports.wrap("store", store, { except: ["refreshLogId"] });
  const statements = ports.wrap("statements", { run: () => {} }, { sync: ["run"] });
  const db = store.db.withPlugin({
    transformQuery: ({ node }) => {
      statements.run();
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  return { ...store, db, change, transaction };
}
