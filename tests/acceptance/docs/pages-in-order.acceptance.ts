import { rmSync, symlinkSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import { needsRoot } from "../../../libs/testkit/src/jest/needs.ts";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess, type RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { testPage } from "../../support/page-commands.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { FIRST_DAY_PORTS, firstDay, PATIENT, TUTORIAL, WORK } from "./expected-pages.ts";
import { approveLogins, freePortsOf, leftOf, packNewVersion } from "./page-helpers.ts";

const LIMIT_MS = 120_000;
// Only root can run executions as another user.
const { describe: asRoot } = needsRoot();

asRoot("the pages for newcomers, one after the other in one folder", () => {
  let fixture: UpFixture;
  let checkout: string;
  let firstDayInstead: Readonly<Record<string, string>>;
  let stopApproving: () => void;
  let up: RollcallProcess | null = null;

  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    packNewVersion(checkout);
    symlinkSync(join(workspaceRoot, "deploy"), join(checkout, "deploy"));
    firstDayInstead = await freePortsOf(FIRST_DAY_PORTS);
    stopApproving = approveLogins(() => `http://127.0.0.1:${firstDayInstead["7730"]}`, "ana");
  }, LIMIT_MS);

  afterAll(async () => {
    stopApproving();
    for (const pid of await leftOf(checkout)) endProcess(pid);
    for (const folder of [checkout, fixture.dataDirectory]) {
      for (const { pid } of await processesOf(folder)) endProcess(pid);
    }
    await fixture.dispose();
    rmSync(checkout, { recursive: true, force: true, maxRetries: 20 });
  }, LIMIT_MS);

  /** Do what the reader does in the other shell: stop `make run`, and start it with other flags. */
  const restart = async (...flags: readonly string[]) => {
    await stop();
    up = await fixture.up(...flags);
    await fixture.client.becomes(hostname(), "APPROVED CONNECTED HEALTHY");
  };
  const stop = async () => {
    await up?.killed("SIGINT");
    up = null;
  };
  const place = () => ({ checkout, instead: { "127.0.0.1:7700": fixture.server } });

  testPage("README.md", [["list", /\bhealthy\b/]], place, { before: { list: () => restart() } });
  testPage("docs/tutorial.md", TUTORIAL, place, { before: { look: () => restart("--manual-approval", ...PATIENT) } });
  testPage("docs/tutorial-work.md", WORK, place, { before: { agents: () => restart() } });
  testPage(
    "docs/first-day.md",
    firstDay({ before: "0\\.1\\.0", schema: "the schema is unchanged" }),
    () => ({ checkout, instead: firstDayInstead }),
    { before: { folder: stop } },
  );
});
