import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { createUpFixture, type UpFixture } from "../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "./support/checkout.ts";
import { type Expected, testPage } from "./support/page-commands.ts";

const hasGrpcurl = spawnSync("grpcurl", ["-version"]).status === 0;

const CALLS: Expected = [
  ["cli", /^/],
  ["curl", /SCHEDULING_STATE_ELIGIBLE/],
  ["get", /HEALTH_STATE_HEALTHY/],
  ["buf-curl", /SCHEDULING_STATE_INELIGIBLE/],
  ["grpcurl", /SCHEDULING_STATE_ELIGIBLE/],
  ["events", /node\.registered/],
];

describe("the commands of the README and of the page on calls", () => {
  let fixture: UpFixture;
  let checkout: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    await fixture.up();
    await fixture.client.becomes(hostname(), "APPROVED CONNECTED HEALTHY");
  });

  afterAll(async () => {
    await fixture.dispose();
    rmSync(checkout, { recursive: true, force: true });
  });

  const place = () => ({ checkout, instead: { "127.0.0.1:7700": fixture.server } });

  testPage("README.md", [["list", /\bhealthy\b/]], place);
  testPage("docs/how-to/call-the-api.md", CALLS, place, {
    isRunnable: (name) => name !== "grpcurl" || hasGrpcurl,
  });
});
