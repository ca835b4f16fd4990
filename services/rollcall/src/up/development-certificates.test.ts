import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { developmentNames, keepDevelopmentCertificates } from "./development-certificates.ts";

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 0, 1);

let dir: string;
beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), "rollcall-development-")), "tls");
});
afterEach(() => rmSync(join(dir, ".."), { recursive: true }));

async function keep(days = 0, names: readonly string[] = ["localhost", "127.0.0.1", "::1"]) {
  const clock = { wallMs: () => START_MS + days * DAY_MS };
  const files = await keepDevelopmentCertificates({ dir, names, clock, log: silentLogger });
  const ca = new X509Certificate(readFileSync(files.caFile));
  const server = new X509Certificate(readFileSync(files.certFile));
  expect(server.verify(ca.publicKey)).toBe(true);
  for (const name of names) {
    expect(server.checkHost(name) ?? server.checkIP(name)).toBeDefined();
  }
  return { ...files, ca: ca.fingerprint256, server: server.fingerprint256 };
}

describe("keepDevelopmentCertificates()", () => {
  it("should keep what is valid, and let no other user read the keys", async () => {
    const first = await keep();
    expect(await keep(300)).toEqual(first);
    for (const name of ["ca-key.pem", "server-key.pem"]) {
      expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    }
  });

  it("should renew the certificate in time, and for other names, under the same authority", async () => {
    const first = await keep();
    const renewed = await keep(336);
    expect(renewed.server).not.toBe(first.server);
    const named = await keep(336, ["localhost", "10.0.0.7"]);
    expect(named.server).not.toBe(renewed.server);
    expect([renewed.ca, named.ca]).toEqual([first.ca, first.ca]);
  });

  it("should make another authority when the one it had ends, is broken, or is another's", async () => {
    const first = await keep();
    const second = await keep(3_400);
    expect(second.ca).not.toBe(first.ca);
    writeFileSync(join(dir, "ca-key.pem"), "broken");
    const third = await keep(3_401);
    expect(third.ca).not.toBe(second.ca);
    rmSync(join(dir, "server.pem"));
    expect((await keep(3_401)).ca).toBe(third.ca);
  });
});

describe("developmentNames()", () => {
  it("should have this machine's names, and the host that is listened on", () => {
    const own = ["localhost", "127.0.0.1", "::1", "box"];
    expect(developmentNames("0.0.0.0", "box", ["10.0.0.9"])).toEqual([...own, "10.0.0.9"]);
    expect(developmentNames("127.0.0.1", "box", ["10.0.0.9"])).toEqual(own);
    expect(developmentNames("10.0.0.7", "box", ["10.0.0.9"])).toEqual([...own, "10.0.0.7"]);
  });
});
