import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { needsRoot } from "../../../libs/testkit/src/jest/needs.ts";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { type Expected, testPage } from "../../support/page-commands.ts";
import { PATIENT, TUTORIAL, WORK } from "./expected-pages.ts";

const START_LIMIT_MS = 120_000;
// Only root can run executions as another user.
const { describe: asRoot } = needsRoot();

describe("the commands of the first ten minutes", () => {
  testTutorial("docs/tutorial.md", TUTORIAL, ["--manual-approval", ...PATIENT], "PENDING");
});

asRoot("the commands of the tutorial of work", () => {
  testTutorial("docs/tutorial-work.md", WORK, [], "APPROVED");
});

/** Test a page that requires a running `up`. */
function testTutorial(page: string, expected: Expected, flags: readonly string[], membership: string): void {
  let fixture: UpFixture;
  let checkout: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    await fixture.up(...flags);
    await fixture.client.becomes(hostname(), `${membership} CONNECTED HEALTHY`);
  }, START_LIMIT_MS);

  afterAll(async () => {
    for (const { pid } of await processesOf(checkout)) endProcess(pid);
    for (const { pid } of await processesOf(fixture.dataDirectory)) endProcess(pid);
    await fixture.dispose();
    rmSync(checkout, { recursive: true, force: true });
  }, START_LIMIT_MS);

  testPage(page, expected, () => ({ checkout, instead: { "127.0.0.1:7700": fixture.server } }));
}
