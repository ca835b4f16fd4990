import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { makeGoPrograms, makePythonPrograms } from "../../../bench/src/conformance/kit-programs.ts";
import { TestAuthority } from "../../../libs/testkit/src/certificates.ts";
import type { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { fingerprintIn, isTrusting, userCommand } from "../../support/trusted-authorities.ts";

const LIMIT_MS = 900_000;
const NODES = ["go-1", "python-1"];

describe("agents of the kits that joined with a fingerprint", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-kit-trust-"));
  const [former, next] = [new TestAuthority(), new TestAuthority()];
  const running: ChildProcess[] = [];
  let fixture: UpFixture;
  let up: RollcallProcess;
  let programs: readonly (readonly string[])[];

  beforeAll(async () => {
    const made = await Promise.all([makeGoPrograms(join(folder, "go")), makePythonPrograms(join(folder, "python"))]);
    programs = made.map(({ example }) => example);
    fixture = await createUpFixture();
    const { certFile, keyFile } = former.write("server");
    up = await fixture.up("--no-agent", "--tls-cert", certFile, "--tls-key", keyFile, "--tls-ca", former.caFile);
  }, LIMIT_MS);

  afterAll(async () => {
    await end();
    await fixture?.dispose();
    for (const path of [folder, former.dir, next.dir]) rmSync(path, { recursive: true, force: true });
  }, LIMIT_MS);

  function start(fingerprint: string): void {
    for (const [index, [program = "", ...words]] of programs.entries()) {
      const name = NODES[index] ?? "";
      const place = ["--server", `https://${fixture.server}`, "--name", name, "--state-dir", join(folder, name)];
      const child = spawn(program, [...words, ...place, "--ca-fingerprint", fingerprint], {
        stdio: ["ignore", "inherit", "inherit"],
      });
      running.push(child);
    }
  }

  async function end(): Promise<void> {
    for (const child of running.splice(0)) {
      const exited = once(child, "exit");
      if (child.kill("SIGKILL")) await exited;
    }
  }

  const allTrust = (...wanted: readonly string[]) => Promise.all(NODES.map((it) => isTrusting(fixture, it, wanted)));

  it(
    "should follow the authority, and reconnect with their old command",
    async () => {
      const before = fingerprintIn(former.caFile);
      const after = fingerprintIn(next.caFile);
      start(before);
      await allTrust(before);
      const pair = next.write("next");
      const check = () => userCommand(fixture, "doctor", "--certificate", pair.certFile);
      appendFileSync(pair.certFile, readFileSync(next.caFile));
      expect((await check()).code).toBe(1);
      appendFileSync(former.caFile, readFileSync(next.caFile));
      await allTrust(before, after);
      expect(await check()).toMatchObject({ code: 0, out: expect.stringContaining("locks out none of 2 agents") });

      const server = join(former.dir, "server");
      writeFileSync(`${server}-key.pem`, readFileSync(pair.keyFile));
      writeFileSync(`${server}.pem`, readFileSync(pair.certFile));
      await up.logged("tls certificate replaced", { verified_by: after });
      await end();
      start(before);
      writeFileSync(former.caFile, readFileSync(next.caFile));
      // A kit accepts a new authority only if it verifies the kit's connection, so each kit has reconnected.
      await allTrust(after);
    },
    LIMIT_MS,
  );
});
