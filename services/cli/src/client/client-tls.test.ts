import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { UsageError } from "../failure.ts";
import { createClientTls, type TlsFlags } from "./client-tls.ts";

const OWN = {
  pid: 7,
  server: "127.0.0.1:7700",
  agents: "127.0.0.1:7701",
  probes: "127.0.0.1:7790",
};

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "rollcall-client-tls-"));
  for (const name of ["a", "b", "c", "k"]) writeFileSync(join(cwd, `${name}.pem`), name);
});
afterEach(() => rmSync(cwd, { recursive: true }));

describe("createClientTls()", () => {
  it("should take flags before variables, and those before what `up` wrote", () => {
    const runFile = { ...OWN, tls: { caFile: join(cwd, "c.pem"), serverName: "own.example" } };
    const env = { ROLLCALL_CA_FILE: "b.pem", ROLLCALL_TLS_SERVER_NAME: "b.example" };
    const caOf = (flags: TlsFlags, shell: Parameters<typeof createClientTls>[1]) =>
      createClientTls(flags, shell, runFile).optionsFor("https://127.0.0.1:7700");
    const byFlag = { ca: Buffer.from("a"), servername: "b.example" };
    expect(caOf({ caFile: "a.pem" }, { env, cwd })).toEqual(byFlag);
    expect(caOf({}, { env, cwd })).toEqual({ ca: Buffer.from("b"), servername: "b.example" });
    expect(caOf({}, { env: {}, cwd })).toEqual({
      ca: Buffer.from("c"),
      servername: "own.example",
    });
  });

  it("should trust what `up` wrote for its own address alone", () => {
    const runFile = { ...OWN, tls: { caFile: join(cwd, "c.pem"), serverName: null } };
    const tls = createClientTls({}, { env: {}, cwd }, runFile);
    expect(tls.isMeant("127.0.0.1:7700")).toBe(true);
    expect(tls.isMeant("elsewhere:7700")).toBe(false);
    expect(tls.optionsFor("https://elsewhere:7700")).toEqual({});
    expect(tls.optionsFor("http://127.0.0.1:7700")).toEqual({});
  });

  it("should tell what clients have to trust, with absolute paths", () => {
    const runFile = { ...OWN, tls: { caFile: join(cwd, "c.pem"), serverName: "localhost" } };
    const own = createClientTls({}, { env: {}, cwd }, runFile);
    expect(own.trustFor("https://127.0.0.1:7700")).toEqual({ caFile: join(cwd, "c.pem"), serverName: "localhost" });
    expect(own.trustFor("http://127.0.0.1:7700")).toEqual({ caFile: null, serverName: null });
    const named = createClientTls({ caFile: "a.pem" }, { env: {}, cwd }, runFile);
    expect(named.trustFor("https://elsewhere:7700")).toEqual({ caFile: join(cwd, "a.pem"), serverName: null });
  });

  it("should mean TLS wherever something is said about it", () => {
    const shell = { env: {}, cwd };
    const pair = { clientCert: "a.pem", clientKey: "k.pem" };
    const tls = createClientTls(pair, shell, null);
    expect(tls.isMeant("elsewhere:7700")).toBe(true);
    expect(tls.optionsFor("https://elsewhere:7700")).toEqual({
      cert: Buffer.from("a"),
      key: Buffer.from("k"),
    });
    expect(createClientTls({}, shell, OWN).isMeant(OWN.server)).toBe(false);
  });

  it("should refuse half a pair, and name a file that cannot be read", () => {
    const shell = { env: { ROLLCALL_CLIENT_CERT: "a.pem" }, cwd };
    expect(() => createClientTls({}, shell, null)).toThrow(UsageError);
    const tls = createClientTls({ caFile: "nowhere.pem" }, { env: {}, cwd }, null);
    const read = () => tls.optionsFor("https://elsewhere:7700");
    expect(read).toThrow(UsageError);
    expect(read).toThrow(`cannot read ${join(cwd, "nowhere.pem")}: no such file or directory`);
  });
});
