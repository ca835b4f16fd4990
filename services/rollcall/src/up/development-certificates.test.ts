import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { captureLog } from "@rollcall/testkit/log-capture";
import { developmentNames, keepDevelopmentCertificates } from "./development-certificates.ts";

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 0, 1);

let dir: string;
beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), "rollcall-development-")), "tls");
});
afterEach(() => rmSync(join(dir, ".."), { recursive: true }));

const NAMES = ["localhost", "127.0.0.1", "::1"];

async function keep(days = 0, names: readonly string[] = NAMES) {
  const clock = { wallMs: () => START_MS + days * DAY_MS };
  const { log, lines } = captureLog();
  const files = await keepDevelopmentCertificates({ dir, names, clock, log });
  const authorities = readFileSync(files.caFile, "utf8").match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  const roots = authorities.map((pem) => new X509Certificate(pem));
  const server = new X509Certificate(readFileSync(files.certFile));
  const [verifying] = roots.filter((root) => server.verify(root.publicKey));
  for (const name of names) {
    expect(server.checkHost(name) ?? server.checkIP(name)).toBeDefined();
  }
  return {
    ca: verifying?.fingerprint256,
    announced: roots.map((root) => root.fingerprint256),
    server: server.fingerprint256,
    warnings: lines.filter(({ level }) => level === "warn").map(({ msg }) => String(msg)),
  };
}

describe("keepDevelopmentCertificates()", () => {
  it("should keep valid files, and let no other user read the keys", async () => {
    const first = await keep();
    expect(first.warnings).toEqual([]);
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

  it("should announce the next authority a year before it signs, so that agents know it by then", async () => {
    const first = await keep();
    expect(first.announced).toEqual([first.ca]);
    const renewed = await keep(3_270);
    const announced = await keep(3_290);
    expect(announced).toMatchObject({ ca: first.ca, server: renewed.server, warnings: [] });
    expect(announced.announced).toEqual([first.ca, expect.any(String)]);
    const [, next] = announced.announced;
    expect(await keep(3_300)).toEqual(announced);
    // Before the next authority signs, the certificate is renewed with the current authority, also for other names.
    const named = await keep(3_610, [...NAMES, "10.0.0.7"]);
    expect(named).toMatchObject({ ca: first.ca, announced: announced.announced });
    const switched = await keep(3_625);
    expect(switched).toMatchObject({ ca: next, announced: announced.announced, warnings: [] });
    expect(await keep(3_626)).toMatchObject({ ca: next, announced: [next], server: switched.server });
  });

  it("should keep the certificate whose authority has lost its key, and announce the next authority", async () => {
    const first = await keep();
    writeFileSync(join(dir, "ca-key.pem"), "broken");
    const announced = await keep(1);
    expect(announced).toMatchObject({ ca: first.ca, server: first.server, warnings: [] });
    const [, next] = announced.announced;
    expect(await keep(2)).toEqual(announced);
    expect(await keep(336)).toMatchObject({ ca: next, warnings: [] });
    expect((await keep(337)).announced).toEqual([next]);
  });

  it.each([
    ["certificate is gone", "ca.pem", 1],
    ["time has run out", "server.pem", 3_700],
  ])("should say what to do when the authority's %s and it must be replaced immediately", async (_, file, days) => {
    const first = await keep();
    rmSync(join(dir, file));
    const replaced = await keep(days);
    expect(replaced.ca).not.toBe(first.ca);
    expect(replaced.warnings).toEqual([expect.stringContaining("agents that joined with --ca-fingerprint")]);
    expect(await keep(days + 1)).toMatchObject({ ca: replaced.ca, server: replaced.server, warnings: [] });
  });

  it("should blame the clock, not the certificates, while it is behind them", async () => {
    const first = await keep();
    const early = await keep(-20_000);
    expect(early).toMatchObject({ ca: first.ca, server: first.server });
    expect(early.warnings).toEqual([expect.stringContaining("correct this machine's clock")]);
  });
});

describe("developmentNames()", () => {
  it("should have this machine's names and the listening host", () => {
    const own = ["localhost", "127.0.0.1", "::1", "box"];
    expect(developmentNames("0.0.0.0", "box", ["10.0.0.9"])).toEqual([...own, "10.0.0.9"]);
    expect(developmentNames("127.0.0.1", "box", ["10.0.0.9"])).toEqual(own);
    expect(developmentNames("10.0.0.7", "box", ["10.0.0.9"])).toEqual([...own, "10.0.0.7"]);
  });
});
