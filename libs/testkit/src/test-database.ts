import { randomUUID } from "node:crypto";
import { silentLogger } from "@rollcall/process";
import { openStore, type Store } from "@rollcall/store";
import { runStatement, sharedServerUrl, TEMPLATE_DATABASE, withDatabase } from "./shared-server.ts";

/** A migrated database of one test file. */
export interface TestDatabase {
  readonly url: string;
  readonly store: Store;
  /** Open another store on the same database, as another process would; closed by `drop`. */
  openStore(applicationName?: string): Promise<Store>;
  /** Close the stores and drop the database. */
  drop(): Promise<void>;
}

/** Clone a migrated database from the run's template. The server is started by the first test that asks. */
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
      // Forced: a test that failed may have left connections behind.
      await runStatement(serverUrl, `drop database ${name} with (force)`);
    },
  };
}
