import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createAuthority } from "@rollcall/identity/certificates";
import { UsageError } from "../failure.ts";
import { createClientTls, type TlsFlags } from "./client-tls.ts";

const OWN = {
  pid: 7,
  server: "127.0.0.1:7700",
  agents: "127.0.0.1:7701",
  probes: "127.0.0.1:7790",
};

const HOUR_MS = 3_600_000;
const REQUEST = { commonName: "a test", notBeforeMs: Date.now() - HOUR_MS, notAfterMs: Date.now() + HOUR_MS };

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "rollcall-client-tls-"));
  const { certPem, keyPem } = createAuthority(REQUEST);
  const contents = { a: `a\n${certPem}`, b: `b\n${certPem}`, c: `c\n${certPem}`, k: keyPem };
  for (const [name, content] of Object.entries(contents)) writeFileSync(join(cwd, `${name}.pem`), content);
  writeFileSync(join(cwd, "other.pem"), createAuthority(REQUEST).keyPem);
  writeFileSync(join(cwd, "junk.pem"), "junk");
  writeFileSync(join(cwd, "empty.pem"), "");
});
afterAll(() => rmSync(cwd, { recursive: true }));

const contentOf = (name: string) => readFileSync(join(cwd, name));

describe("createClientTls()", () => {
  it("should prefer flags to variables, and variables to what `up` wrote", () => {
    const runFile = { ...OWN, tls: { caFile: join(cwd, "c.pem"), serverName: "own.example" } };
    const env = { ROLLCALL_CA_FILE: "b.pem", ROLLCALL_TLS_SERVER_NAME: "b.example" };
    const caOf = (flags: TlsFlags, shell: Parameters<typeof createClientTls>[1]) =>
      createClientTls(flags, shell, runFile).optionsFor("https://127.0.0.1:7700");
    const byFlag = { ca: contentOf("a.pem"), servername: "b.example" };
    expect(caOf({ caFile: "a.pem" }, { env, cwd })).toEqual(byFlag);
    expect(caOf({}, { env, cwd })).toEqual({ ca: contentOf("b.pem"), servername: "b.example" });
    expect(caOf({}, { env: {}, cwd })).toEqual({
      ca: contentOf("c.pem"),
      servername: "own.example",
    });
  });

  it("should trust what `up` wrote only for its own address", () => {
    const runFile = { ...OWN, tls: { caFile: join(cwd, "c.pem"), serverName: null } };
    const tls = createClientTls({}, { env: {}, cwd }, runFile);
    expect(tls.isMeant("127.0.0.1:7700")).toBe(true);
    expect(tls.isMeant("elsewhere:7700")).toBe(false);
    expect(tls.optionsFor("https://elsewhere:7700")).toEqual({});
    expect(tls.optionsFor("http://127.0.0.1:7700")).toEqual({});
  });

  it("should return what clients must trust, with absolute paths", () => {
    const runFile = { ...OWN, tls: { caFile: join(cwd, "c.pem"), serverName: "localhost" } };
    const own = createClientTls({}, { env: {}, cwd }, runFile);
    expect(own.trustFor("https://127.0.0.1:7700")).toEqual({ caFile: join(cwd, "c.pem"), serverName: "localhost" });
    expect(own.trustFor("http://127.0.0.1:7700")).toEqual({ caFile: null, serverName: null });
    const named = createClientTls({ caFile: "a.pem" }, { env: {}, cwd }, runFile);
    expect(named.trustFor("https://elsewhere:7700")).toEqual({ caFile: join(cwd, "a.pem"), serverName: null });
  });

  it("should use TLS if any TLS option is given", () => {
    const shell = { env: {}, cwd };
    const pair = { clientCert: "a.pem", clientKey: "k.pem" };
    const tls = createClientTls(pair, shell, null);
    expect(tls.isMeant("elsewhere:7700")).toBe(true);
    expect(tls.optionsFor("https://elsewhere:7700")).toEqual({
      cert: contentOf("a.pem"),
      key: contentOf("k.pem"),
    });
    expect(createClientTls({}, shell, OWN).isMeant(OWN.server)).toBe(false);
  });

  it("should refuse a certificate without a key, and name an unreadable file", () => {
    const shell = { env: { ROLLCALL_CLIENT_CERT: "a.pem" }, cwd };
    expect(() => createClientTls({}, shell, null)).toThrow(UsageError);
    const tls = createClientTls({ caFile: "nowhere.pem" }, { env: {}, cwd }, null);
    const read = () => tls.optionsFor("https://elsewhere:7700");
    expect(read).toThrow(UsageError);
    expect(read).toThrow(`cannot read ${join(cwd, "nowhere.pem")}: no such file or directory`);
  });

  it.each<readonly [string, TlsFlags, string]>([
    ["an authority that is no PEM", { caFile: "junk.pem" }, "junk.pem: contains no PEM certificate"],
    ["an empty authority", { caFile: "empty.pem" }, "empty.pem: contains no PEM certificate"],
    [
      "a certificate that is no PEM",
      { clientCert: "junk.pem", clientKey: "k.pem" },
      "junk.pem: contains no PEM certificate",
    ],
    ["a key that is no PEM", { clientCert: "a.pem", clientKey: "junk.pem" }, "junk.pem: contains no PEM private key"],
    [
      "the key of another certificate",
      { clientCert: "a.pem", clientKey: "other.pem" },
      "other.pem: not the key of the certificate in CWD/a.pem",
    ],
  ])("should refuse %s", (_, flags, message) => {
    const tls = createClientTls(flags, { env: {}, cwd }, null);
    const read = () => tls.optionsFor("https://elsewhere:7700");
    expect(read).toThrow(UsageError);
    expect(read).toThrow(`${cwd}/${message.replace("CWD", cwd)}`);
  });
});
