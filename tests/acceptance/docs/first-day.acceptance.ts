import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { TestIssuer } from "../../../libs/testkit/src/test-issuer.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { type CommandPlace, testPage } from "../../support/page-commands.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { buildEarlier, type EarlierRelease } from "../postgres/earlier-release.ts";
import { approveLogins, leftOf } from "./page-helpers.ts";

const LIMIT_MS = 120_000;
/** There is no release yet: the last state with another schema that the present one migrates. */
const EARLIER = "a2cd30cb26a5a47b4d239aaa45842bc8b30f0ab4";
const EARLIER_VERSION = "0.0.9";
/** What the page unpacks. */
const TARBALL = "rollcall-0.1.0-linux-x64";
const PORTS = ["7700", "7701", "7790", "7720", "9090"];

describe("an operator's first day, from docs/first-day.md", () => {
  const issuer = new TestIssuer();
  let place: CommandPlace;
  let data: string;
  let stopApproving: () => void;
  let earlier: EarlierRelease;

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), "rollcall-first-day-"));
    const checkout = layOutCheckout(data);
    packNewVersion(checkout);
    earlier = await buildEarlier(EARLIER);
    const version = { type: "module", version: EARLIER_VERSION };
    writeFileSync(join(dirname(earlier.main), "../package.json"), JSON.stringify(version));
    writeProgram(join(checkout, "bin/rollcall"), `exec '${process.execPath}' '${earlier.main}' "$@"`);
    symlinkSync(join(workspaceRoot, "deploy"), join(checkout, "deploy"));
    // The earlier release asks for keys by another type.
    issuer.isStrict = false;
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
    await earlier.remove();
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
      [
        "upgrade",
        new RegExp(
          "rollcall 0\\.0\\.9.*rollcall 0\\.1\\.0.*RollcallProcessDown.*firing.*" +
            `${latestMigration()}.*gamma[^\\n]*HEALTHY`,
          "s",
        ),
      ],
      ["upgrade-agents", /3 on 0\.1\.0/],
      ["restore", /gamma.*APPROVED.*HEALTHY/],
      ["end", /^/],
    ],
    () => place,
  );
});

/** The migration that the present sources end with: "0029-console-sessions". */
function latestMigration(): string {
  const names = readdirSync(join(workspaceRoot, "libs/store/src/database/migrations"));
  const found = names.filter((name) => /^\d{4}-[a-z0-9-]+\.ts$/.test(name)).toSorted();
  return basename(found.at(-1) ?? "", ".ts");
}

function writeProgram(path: string, line: string): void {
  writeFileSync(path, `#!/bin/sh\nunset NODE_OPTIONS\n${line}\n`);
  chmodSync(path, 0o755);
}

/** A tarball as the page unpacks it, whose program is that of the present sources. */
function packNewVersion(checkout: string): void {
  const folder = join(checkout, TARBALL);
  mkdirSync(folder);
  cpSync(join(checkout, "bin"), join(folder, "bin"), { recursive: true });
  execFileSync("tar", ["-czf", `${TARBALL}.tar.gz`, TARBALL], { cwd: checkout });
  rmSync(folder, { recursive: true });
}
