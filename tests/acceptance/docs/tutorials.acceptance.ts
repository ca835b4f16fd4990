import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { type Expected, testPage } from "../../support/page-commands.ts";

const START_LIMIT_MS = 120_000;
/** As the pages have them: on a slow machine a node would be judged between two commands. */
const PATIENT = ["--set", "Orchestrator.NodeManager.DisconnectTimeout=1m"];
const PATIENT_TOO = ["--set", "Orchestrator.NodeManager.UnknownTimeout=5m"];

const TUTORIAL: Expected = [
  ["look", /CONNECTED[\s\S]*PENDING/],
  ["agents", /alpha\s[\s\S]*PENDING[\s\S]*HEALTHY/],
  ["approve", /Ok[\s\S]*APPROVED[\s\S]*rack 7, checked/],
  ["crash", /CONNECTED -> DISCONNECTED[\s\S]*beta\s.*\bHEALTHY/],
  ["back", /DISCONNECTED -> CONNECTED/],
  ["drain", /DRAINED[\s\S]*Ok/],
  ["end", /node\.drain/],
];

const WORK: Expected = [
  ["agents", /HEALTHY/],
  ["service", /web: 2 of 2 ready[\s\S]*READY[\s\S]*on port \d+/],
  ["crash", /web: 2 of 2 ready[\s\S]*LOST|REPLACED/],
  ["back", /CONNECTED/],
  ["drain", /DRAINED/],
  ["run", /^Linux$/m],
  ["end", /^Ok$/m],
];

// Only root can run executions as another user.
const asRoot = process.getuid?.() === 0 ? describe : describe.skip;

describe("the commands of the first ten minutes", () => {
  testTutorial("docs/tutorial.md", TUTORIAL, ["--manual-approval", ...PATIENT, ...PATIENT_TOO], "PENDING");
});

asRoot("the commands of the tutorial of work", () => {
  testTutorial("docs/tutorial-work.md", WORK, [], "APPROVED");
});

/** Run a page beside an `up` as it asks for. */
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
