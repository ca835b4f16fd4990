import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { createUpFixture, type UpFixture } from "../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "./support/checkout.ts";
import { type Expected, testPage } from "./support/page-commands.ts";

const hasGrpcurl = spawnSync("grpcurl", ["-version"]).status === 0;

const EXPECTED: Expected = [
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
  });

  afterAll(async () => {
    await fixture.dispose();
    rmSync(checkout, { recursive: true, force: true });
  });

  testPage("README.md", EXPECTED, () => ({ checkout, instead: { "127.0.0.1:7700": fixture.server } }), {
    isRunnable: (name) => name !== "grpcurl" || hasGrpcurl,
  });
});
