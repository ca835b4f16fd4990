import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { processesOf } from "../../services/rollcall/src/testing/processes.ts";
import { endProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../support/checkout.ts";
import { commandBlocks } from "../support/readme-blocks.ts";
import { workspaceRoot } from "../support/workspace.ts";

const START_LIMIT_MS = 120_000;
const COMMAND_LIMIT_MS = 120_000;
const ADDRESS_IN_PAGE = "127.0.0.1:7700";

const run = promisify(execFile);
const blocks = commandBlocks(readFileSync(join(workspaceRoot, "docs/tutorial-work.md"), "utf8"));

/** What each block must print, in the order in which the page has them: each builds on those before. */
const EXPECTED: readonly (readonly [name: string, output: RegExp])[] = [
  ["agents", /HEALTHY/],
  ["service", /web: 2 of 2 ready[\s\S]*READY[\s\S]*on port \d+/],
  ["crash", /web: 2 of 2 ready[\s\S]*LOST|REPLACED/],
  ["back", /CONNECTED/],
  ["drain", /DRAINED/],
  ["run", /^Linux$/m],
  ["end", /^Ok$/m],
];

// Executions are another user's: only root can make them so.
const asRoot = process.getuid?.() === 0 ? describe : describe.skip;

asRoot("the commands of docs/tutorial-work.md", () => {
  let fixture: UpFixture;
  let checkout: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    await fixture.up();
    await fixture.client.becomes(hostname(), "APPROVED CONNECTED HEALTHY");
  }, START_LIMIT_MS);

  afterAll(async () => {
    for (const { pid } of await processesOf(checkout)) endProcess(pid);
    for (const { pid } of await processesOf(fixture.dataDirectory)) endProcess(pid);
    await fixture.dispose();
    rmSync(checkout, { recursive: true, force: true });
  }, START_LIMIT_MS);

  it("should all be known to this test", () => {
    expect(blocks.map(({ name }) => name)).toEqual(EXPECTED.map(([name]) => name));
  });

  for (const [name, output] of EXPECTED) {
    it(`should work: ${name}`, async () => {
      const { commands } = blocks.find((block) => block.name === name) ?? { commands: "false" };
      const here = commands.replaceAll(ADDRESS_IN_PAGE, fixture.server);
      const { stdout } = await run("sh", ["-e", "-c", here], { cwd: checkout, timeout: COMMAND_LIMIT_MS });
      expect(stdout).toMatch(output);
    });
  }
});
