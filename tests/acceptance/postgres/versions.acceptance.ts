import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, jest } from "@jest/globals";
import type { Binaries } from "../../../libs/postgres-embedded/src/programs.ts";
import { query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createServeFixture } from "../../../services/rollcall/src/testing/serve-fixture.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { createRawCluster } from "./raw-postgres.ts";
import { walk } from "./walk.ts";

jest.setTimeout(600_000);

/** The folder with older versions, which .ci/run installs. All other tests use the packaged version. */
const INSTALLED = join(workspaceRoot, ".tools/postgres/node_modules");
const VERSIONS = [13, 14, 15, 16, 17];

const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

describe("the store on an older Postgres", () => {
  for (const version of VERSIONS) {
    const program = join(INSTALLED, `postgres-${version}`, "dist/index.js");
    needs(`Postgres ${version}`, existsSync(program)).it(
      `should migrate, walk, and be backed up for the packaged one: ${version}`,
      async () => {
        const { initdb, postgres }: Binaries = await import(pathToFileURL(program).href);
        const cluster = await createRawCluster({ initdb, postgres });
        undo.push(cluster.drop);
        const server = await cluster.init("data");
        await server.start();
        const [row] = await query(server.url(), "select current_setting('server_version_num')::int / 10000 as major");
        expect(row).toEqual({ major: version });
        const fixture = await createServeFixture(server.url());
        undo.push(fixture.dispose);
        for (const service of ["registry", "health", "admin", "scheduler"] as const) {
          await fixture.serve(service, ...(service === "registry" ? ["--manual-approval"] : []));
        }
        await walk(fixture);
        const archive = join(cluster.root, "older.backup");
        const backup = new RollcallProcess(["backup", archive, "--database-url", server.url()]);
        expect([await backup.exit(), backup.err]).toEqual([0, ""]);
        const restore = new RollcallProcess(["restore", archive, "--data-dir", join(cluster.root, "restored")]);
        expect([await restore.exit(), restore.err]).toEqual([0, ""]);
      },
    );
  }
});
