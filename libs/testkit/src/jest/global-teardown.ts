import { discardServer, SERVER_DIR_VARIABLE } from "./test-server.ts";

/** Stop the run's Postgres, if a test started it. */
// biome-ignore lint/style/noDefaultExport: jest calls the default export of this file.
export default async function tearDown(): Promise<void> {
  const dir = process.env[SERVER_DIR_VARIABLE];
  if (dir !== undefined) await discardServer(dir);
}
