import { randomUUID } from "node:crypto";
import { silentLogger } from "@rollcall/process";
import { openStore, type Store } from "@rollcall/store";
import { runStatement, sharedServerUrl, TEMPLATE_DATABASE, withDatabase } from "./shared-server.ts";

/** A separate, migrated database for one test file. */
export interface TestDatabase {
  readonly url: string;
  readonly store: Store;
  /** Open another store on the same database, as another process would. `drop` closes it. */
  openStore(applicationName?: string): Promise<Store>;
  /** Close the stores and drop the database. */
  drop(): Promise<void>;
}

/**
 * Clone a migrated database from the run's template. The first test that needs a database starts the
 * server.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = await sharedServerUrl();
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await runStatement(serverUrl, `create database ${name} template ${TEMPLATE_DATABASE}`);
  const url = withDatabase(serverUrl, name);
  const stores: Store[] = [];
  const open = async (applicationName = "test") => {
    const store = await openStore({ url, log: silentLogger, applicationName });
    stores.push(store);
    return store;
  };
  return {
    url,
    store: await open(),
    openStore: open,
    drop: async () => {
      await Promise.all(stores.map((store) => store.close()));
      // Use force, because a failed test may have left connections open.
      await runStatement(serverUrl, `drop database ${name} with (force)`);
    },
  };
}
