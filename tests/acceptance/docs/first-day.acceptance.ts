import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { TestIssuer } from "../../../libs/testkit/src/test-issuer.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { type CommandPlace, testPage } from "../../support/page-commands.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { approveLogins, leftOf } from "./page-helpers.ts";

const LIMIT_MS = 120_000;
const PORTS = ["7700", "7701", "7790", "7720", "9090"];

describe("an operator's first day, from docs/first-day.md", () => {
  const issuer = new TestIssuer();
  let place: CommandPlace;
  let data: string;
  let stopApproving: () => void;

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), "rollcall-first-day-"));
    const checkout = layOutCheckout(data);
    symlinkSync(join(workspaceRoot, "deploy"), join(checkout, "deploy"));
    await issuer.start();
    issuer.claims = { sub: "alice", groups: ["staff", "sre"] };
    stopApproving = approveLogins(issuer);
    const ports = await freePorts(PORTS.length);
    const instead = Object.fromEntries(PORTS.map((port, at) => [port, String(ports[at])]));
    place = { checkout, instead: { ...instead, "https://login.example/realms/ops": issuer.url } };
  }, LIMIT_MS);

  afterAll(async () => {
    stopApproving();
    for (const pid of await leftOf(place.checkout)) endProcess(pid);
    for (const { pid } of await processesOf(data)) endProcess(pid);
    await issuer.stop();
    for (const folder of [place.checkout, data]) rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  }, LIMIT_MS);

  testPage(
    "docs/first-day.md",
    [
      ["certificates", /control plane/],
      ["configuration", /ManualApproval\s+true/],
      ["start", /Postgres/],
      ["login", /Logged in to .* as user:alice, role admin[\s\S]*user:alice/],
      ["machines", /alpha[\s\S]*PENDING/],
      ["approve", /Key[\s\S]*Ok|APPROVED[\s\S]*user:alice/],
      ["prometheus", /SUCCESS/],
      ["backup", /The archive is whole/],
      ["upgrade", /RollcallProcessDown[\s\S]*firing[\s\S]*gamma.*HEALTHY/],
      ["restore", /gamma.*APPROVED.*HEALTHY/],
      ["end", /^/],
    ],
    () => place,
  );
});
