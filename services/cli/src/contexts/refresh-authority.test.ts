import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { fingerprintOf } from "@rollcall/identity";
import { createAuthority, type Issued, issueCertificate } from "@rollcall/identity/certificates";
import { describeDistrust } from "../client/describe-distrust.ts";
import type { Shell } from "../shell.ts";
import { type Context, newContext } from "./context.ts";
import { authorityDirectory } from "./context-file.ts";
import { refreshAuthority } from "./refresh-authority.ts";

const HOUR_MS = 3_600_000;

let folder: string;
let shell: Shell;
let ours: Issued;
let others: Issued;
let server: Server;
let asked: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-refresh-"));
  ours = createAuthority({ commonName: "authority", ...valid() });
  others = createAuthority({ commonName: "authority", ...valid() });
  asked = 0;
  const env = { XDG_CONFIG_HOME: join(folder, "config") };
  const interrupted = new AbortController().signal;
  // Set only the fields that the function uses.
  shell = { env, home: folder, cwd: folder, wallMs: () => Date.now(), interrupted } as Partial<Shell> as Shell;
  mkdirSync(authorityDirectory(shell), { recursive: true });
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const valid = () => ({ notBeforeMs: Date.now() - HOUR_MS, notAfterMs: Date.now() + HOUR_MS });
const pemOf = ({ certPem }: Issued) => certPem;
const fingerprint = (authority: Issued) => fingerprintOf(new X509Certificate(pemOf(authority)));

async function listen(signer: Issued, served: string): Promise<string> {
  const request = { commonName: "server", names: ["127.0.0.1"], usage: "server" } as const;
  const { certPem, keyPem } = issueCertificate(signer, { ...request, ...valid() });
  server = createServer({ cert: certPem, key: keyPem }, (_, response) => {
    asked += 1;
    response.end(served);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return `https://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

/**
 * Call refreshAuthority() for a context whose authority file is `ageMs` old. Returns the saved context; null if it
 * did not change.
 */
async function refresh(url: string, kept: string, ageMs = 2 * HOUR_MS, at = authorityDirectory(shell)) {
  const caFile = join(at, "kept.pem");
  writeFileSync(caFile, kept);
  const keptAtS = (Date.now() - ageMs) / 1_000;
  utimesSync(caFile, keptAtS, keptAtS);
  const context = newContext({ name: "work", server: url, caFile });
  let saved: Context | null = null;
  const save = async (changed: Context) => {
    saved = changed;
  };
  await refreshAuthority(shell, { context, isNamed: false, save }, null);
  return saved as Context | null;
}

describe("refreshAuthority()", () => {
  it("should save the next authority that a trusted server serves in a separate file of the context", async () => {
    const url = await listen(ours, `${pemOf(ours)}${pemOf(others)}`);
    const saved = await refresh(url, pemOf(ours));
    expect(saved?.caFile).toBe(join(authorityDirectory(shell), "context-work.pem"));
    expect(readFileSync(saved?.caFile ?? "", "utf8")).toBe(`${pemOf(ours)}${pemOf(others)}`);
    expect(readFileSync(join(authorityDirectory(shell), "kept.pem"), "utf8")).toBe(pemOf(ours));
  });

  it("should drop a former authority that is no longer served", async () => {
    const url = await listen(others, pemOf(others));
    const saved = await refresh(url, `${pemOf(ours)}${pemOf(others)}`);
    expect(readFileSync(saved?.caFile ?? "", "utf8")).toBe(pemOf(others));
  });

  it("should ask at most once an hour, and never if the file is the user's", async () => {
    const url = await listen(ours, `${pemOf(ours)}${pemOf(others)}`);
    expect(await refresh(url, pemOf(ours), HOUR_MS / 2)).toBeNull();
    expect(await refresh(url, pemOf(ours), 2 * HOUR_MS, folder)).toBeNull();
    expect(asked).toBe(0);
    await refresh(url, pemOf(ours));
    expect(asked).toBeGreaterThan(0);
  });

  it.each<readonly [string, () => readonly [Issued, string]]>([
    ["is not trusted", () => [others, `${pemOf(ours)}${pemOf(others)}`]],
    ["serves only another authority than its own", () => [ours, pemOf(others)]],
    ["serves nothing", () => [ours, ""]],
    ["serves what is already trusted", () => [ours, pemOf(ours)]],
  ])("should change nothing when the server %s", async (_, of) => {
    const url = await listen(...of());
    expect(await refresh(url, pemOf(ours))).toBeNull();
    expect(readdirSync(authorityDirectory(shell))).toEqual(["kept.pem"]);
  });
});

describe("describeDistrust()", () => {
  const fileOf = (authority: Issued) => {
    const file = join(folder, "ca.pem");
    writeFileSync(file, pemOf(authority));
    return file;
  };

  it("should name both fingerprints and the command that trusts the other one", async () => {
    const url = await listen(others, pemOf(others));
    const text = await describeDistrust(url, { caFile: fileOf(ours), serverName: null });
    expect(text).toContain(
      `the server's authority is ${fingerprint(others)}, and this machine trusts only ${fingerprint(ours)}`,
    );
    expect(text).toContain(`rollcall login --server ${url} --ca-fingerprint ${fingerprint(others)}`);
  });

  it("should add nothing if the server serves a trusted authority", async () => {
    const url = await listen(others, pemOf(ours));
    expect(await describeDistrust(url, { caFile: fileOf(ours), serverName: null })).toBe("");
  });
});
