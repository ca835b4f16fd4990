import { execFile, spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createUpFixture, type UpFixture } from "../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "./support/checkout.ts";
import { commandBlocks } from "./support/readme-blocks.ts";
import { workspaceRoot } from "./support/workspace.ts";

const START_LIMIT_MS = 120_000;
const COMMAND_LIMIT_MS = 60_000;
const ADDRESS_IN_README = "127.0.0.1:7700";

const run = promisify(execFile);
const blocks = commandBlocks(readFileSync(join(workspaceRoot, "README.md"), "utf8"));
const hasGrpcurl = spawnSync("grpcurl", ["-version"]).status === 0;

/** What each block must print, in the order in which the README has them: each builds on those before. */
const EXPECTED: readonly (readonly [name: string, output: RegExp])[] = [
  ["list", /\bHEALTHY\b/],
  ["goodbye", /\bAGENT_SHUTDOWN\b/],
  ["crash", /CONNECTED -> DISCONNECTED[\s\S]*second is APPROVED, DISCONNECTED, HEALTHY/],
  ["cli", /^/],
  ["curl", /SCHEDULING_STATE_ELIGIBLE/],
  ["buf-curl", /SCHEDULING_STATE_INELIGIBLE/],
  ["grpcurl", /SCHEDULING_STATE_ELIGIBLE/],
  ["get", /HEALTH_STATE_HEALTHY/],
  ["events", /node\.registered/],
];

describe("the README's commands", () => {
  let fixture: UpFixture;
  let checkout: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    // As the README has them: on a slow machine a node would be judged between two commands.
    const thresholds = ["DisconnectTimeout=1m", "UnknownTimeout=5m"];
    await fixture.up(...thresholds.flatMap((one) => ["--set", `Orchestrator.NodeManager.${one}`]));
    await fixture.client.becomes(hostname(), "APPROVED CONNECTED HEALTHY");
  }, START_LIMIT_MS);

  afterAll(async () => {
    await fixture.dispose();
    rmSync(checkout, { recursive: true, force: true });
  }, START_LIMIT_MS);

  it("should all be known to this test", () => {
    expect(blocks.map(({ name }) => name)).toEqual(EXPECTED.map(([name]) => name));
  });

  for (const [name, output] of EXPECTED) {
    const runnable = name !== "grpcurl" || hasGrpcurl;
    (runnable ? it : it.skip)(`should work: ${name}`, async () => {
      const { commands } = blocks.find((block) => block.name === name) ?? { commands: "false" };
      const here = commands.replaceAll(ADDRESS_IN_README, fixture.server);
      const { stdout } = await run("sh", ["-e", "-c", here], {
        cwd: checkout,
        timeout: COMMAND_LIMIT_MS,
      });
      expect(stdout).toMatch(output);
    });
  }
});
