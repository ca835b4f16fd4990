import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ManualClock, until } from "@rollcall/testkit/time";
import type { TlsFiles } from "./tls-files.ts";
import { TlsSource } from "./tls-source.ts";

const DAY_MS = 86_400_000;
const REPLACED = "tls certificate replaced";
const REFUSED = "cannot replace the tls certificate, keeping the current one";

let authority: TestAuthority;
beforeEach(() => {
  authority = new TestAuthority();
});
afterEach(() => rmSync(authority.dir, { recursive: true, force: true }));

function filesOf(name: string, clientCaFile?: string): TlsFiles {
  return { ...authority.write(name), clientCaFile };
}

async function open(files: TlsFiles) {
  const { log, lines } = captureLog();
  const clock = new ManualClock({ wallMs: Date.now() });
  const source = await TlsSource.open({ files, clock, log, pollMs: 1_000 });
  const said = (msg: string) => lines.filter((line) => line.msg === msg);
  return { source, clock, lines, said };
}

describe("TlsSource.open()", () => {
  const file = (name: string, content: string | Buffer) => {
    const path = join(authority.dir, name);
    writeFileSync(path, content);
    return path;
  };
  const crossSigned = () => authority.crossSign(new TestAuthority(mkdtempSync(join(authority.dir, "other-"))));
  const cases: readonly [string, () => Partial<TlsFiles>, RegExp][] = [
    ["a missing certificate", () => ({ certFile: "/nowhere/c.pem" }), /^\/nowhere\/c\.pem: .*no such/],
    ["a missing key", () => ({ keyFile: "/nowhere/k.pem" }), /^\/nowhere\/k\.pem: .*no such/],
    ["a directory", () => ({ keyFile: authority.dir }), /is a directory, not a file$/],
    ["no PEM", () => ({ certFile: file("x", "hello") }), /x: contains no PEM certificate$/],
    [
      "a broken certificate",
      () => ({
        certFile: file("y", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
      }),
      /y: contains a certificate that cannot be read$/,
    ],
    ["no key", () => ({ keyFile: authority.caFile }), /ca\.pem: contains no PEM private key$/],
    [
      "the key of another certificate",
      () => ({ keyFile: authority.write("other").keyFile }),
      /other-key\.pem: not the key of the certificate in .*server\.pem$/,
    ],
    ["no client authority", () => ({ clientCaFile: file("z", "") }), /z: contains no PEM certificate/],
    ["no root of clients", () => ({ clientCaFile: file("i", crossSigned()) }), /i: contains only intermediate/],
    ["an authority without its root", () => ({ caFile: file("j", crossSigned()) }), /j: contains only intermediate/],
  ];
  it.each(cases)("should name the file and the problem of %s", async (_, wrong, problem) => {
    await expect(open({ ...filesOf("server"), ...wrong() })).rejects.toThrow(problem);
  });

  it("should use and warn about a certificate that is not valid or expires soon", async () => {
    const nowMs = Date.now();
    const warned = async (notBeforeMs: number, notAfterMs: number) => {
      const files = {
        ...authority.write("odd", { notBeforeMs, notAfterMs }),
        clientCaFile: undefined,
      };
      return (await open(files)).lines.filter(({ level }) => level === "warn").map(({ msg }) => msg);
    };
    expect(await warned(nowMs - 2 * DAY_MS, nowMs - DAY_MS)).toEqual([
      "tls certificate has expired, clients will refuse it",
    ]);
    expect(await warned(nowMs + DAY_MS, nowMs + 2 * DAY_MS)).toEqual(["tls certificate is not valid yet"]);
    expect(await warned(nowMs - DAY_MS, nowMs + DAY_MS)).toEqual(["tls certificate expires soon"]);
    expect(await warned(nowMs - DAY_MS, nowMs + 90 * DAY_MS)).toEqual([]);
  });
});

describe("TlsSource.authority", () => {
  const authorityOf = async (files: TlsFiles) => (await open(files)).source.authority;
  const readFile = (path: string) => readFileSync(path, "utf8");

  it("should be only the certificates in its file", async () => {
    const { keyPem } = authority.issue();
    const caFile = join(authority.dir, "with-key.pem");
    writeFileSync(caFile, `${keyPem}\n# ours\n${readFile(authority.caFile)}`);
    expect((await authorityOf({ ...filesOf("server"), caFile }))?.trim()).toBe(readFile(authority.caFile).trim());
  });

  it("should be the root of the chain without a file, and null without a root", async () => {
    const files = filesOf("server");
    expect(await authorityOf(files)).toBeNull();
    writeFileSync(files.certFile, `${readFile(files.certFile)}${readFile(authority.caFile)}`);
    expect((await authorityOf(files))?.trim()).toBe(readFile(authority.caFile).trim());
  });

  it("should be only the roots of its file, or the root at the end of the chain", async () => {
    const root = new TestAuthority(mkdtempSync(join(authority.dir, "root-")));
    const crossSigned = root.crossSign(authority);
    const files = filesOf("server");
    const caFile = join(authority.dir, "both.pem");
    writeFileSync(caFile, `${crossSigned}${readFile(root.caFile)}`);
    await expect(open({ ...files, caFile })).rejects.toThrow("contains no root that verifies the certificate in");
    writeFileSync(files.certFile, `${readFile(files.certFile)}${crossSigned}`);
    const { source } = await open({ ...files, caFile });
    expect(source.authority).toBe(readFile(root.caFile));
    expect(String(source.verifiedBy)).toBe(readFile(root.caFile));
  });

  it("should follow its file", async () => {
    const caFile = join(authority.dir, "changing.pem");
    writeFileSync(caFile, readFile(authority.caFile));
    const { source } = await open({ ...filesOf("server"), caFile });
    const ours = readFile(caFile);
    const other = new TestAuthority(authority.dir);
    writeFileSync(caFile, `${ours}${readFile(other.caFile)}`);
    await source.reload();
    expect(source.authority).toBe(`${ours}${readFile(other.caFile)}`);
    expect(source.authorities).toHaveLength(2);
    expect(String(source.verifiedBy)).toBe(ours);
  });

  it("should keep the current pair when the file has no authority for the new one", async () => {
    const files = { ...filesOf("server"), caFile: join(authority.dir, "ours.pem") };
    writeFileSync(files.caFile, readFile(authority.caFile));
    const { source, said } = await open(files);
    const before = source.context.cert;
    const other = new TestAuthority(authority.dir);
    other.write("server");
    await source.reload();
    expect(source.context.cert).toBe(before);
    const [refused] = said(REFUSED);
    expect(refused?.problem).toMatch(/ours\.pem: contains no root that verifies the certificate in .*server\.pem/);
    writeFileSync(files.caFile, `${readFile(files.caFile)}${readFile(other.caFile)}`);
    await source.reload();
    expect(said(REPLACED)).toHaveLength(1);
    expect(String(source.verifiedBy)).toBe(readFile(other.caFile));
  });
});

describe("TlsSource", () => {
  it("should use a new pair and expose its expiry", async () => {
    const { source, said } = await open(filesOf("server"));
    const metrics = createMetrics({ defaults: false });
    source.measure(metrics);
    const heard: unknown[] = [];
    const stop = source.onChange(({ cert }) => heard.push(cert));
    await source.reload();
    expect(said(REPLACED)).toEqual([]);
    const notAfterMs = Math.floor(Date.now() / 1000) * 1000 + 90 * DAY_MS;
    authority.write("server", { notAfterMs });
    await source.reload();
    expect(said(REPLACED)).toHaveLength(1);
    expect(heard).toEqual([source.context.cert]);
    expect(await renderMetrics(metrics)).toContain(
      `rollcall_tls_certificate_expiry_timestamp_seconds ${notAfterMs / 1000}\n`,
    );
    stop();
    authority.write("server");
    await source.reload();
    expect(heard).toHaveLength(1);
  });

  it("should keep the current pair when the files are invalid, and log it once", async () => {
    const files = filesOf("server");
    const { source, clock, said } = await open(files);
    const metrics = createMetrics({ defaults: false });
    source.measure(metrics);
    const before = source.context.cert;
    const { certPem } = authority.issue();
    const ending = new AbortController();
    let looks = 0;
    const done = source.task.run(ending.signal, () => looks++);
    const look = async () => {
      const next = looks + 1;
      await until("the task to sleep", () => clock.sleepers > 0);
      clock.advance(1_000);
      await until("the next look", () => looks >= next);
    };
    await until("the first look", () => looks > 0);
    const own = readFileSync(files.certFile);
    for (let round = 0; round < 3; round += 1) {
      // Invalid for one check, and then as before.
      writeFileSync(files.certFile, certPem);
      await look();
      writeFileSync(files.certFile, own);
      await look();
    }
    writeFileSync(files.certFile, certPem);
    await look();
    // No refusal may be logged yet, because the check might have run between the writes of the two files.
    expect(said(REFUSED)).toEqual([]);
    await look();
    await look();
    expect(said(REFUSED)).toMatchObject([
      { problem: `${files.keyFile}: not the key of the certificate in ${files.certFile}` },
    ]);
    rmSync(files.certFile);
    await look();
    await look();
    await look();
    expect(said(REFUSED)).toHaveLength(2);
    expect(source.context.cert).toBe(before);
    expect(await renderMetrics(metrics)).toContain('reloads_total{outcome="refused"} 2');
    authority.write("server");
    await look();
    expect(said(REPLACED)).toHaveLength(1);
    ending.abort(new Error("the test ends"));
    await expect(done).rejects.toThrow("the test ends");
  });

  it("should follow a symbolic link that is swapped, as Kubernetes does", async () => {
    const version = (name: string) => {
      const { certFile, keyFile } = authority.write(name);
      const dir = join(authority.dir, `..${name}`);
      mkdirSync(dir);
      cpSync(certFile, join(dir, "tls.crt"));
      cpSync(keyFile, join(dir, "tls.key"));
      return dir;
    };
    const link = join(authority.dir, "..data");
    symlinkSync(version("first"), link);
    const files = ["tls.crt", "tls.key"].map((name) => {
      symlinkSync(join("..data", name), join(authority.dir, name));
      return join(authority.dir, name);
    });
    const [certFile = "", keyFile = ""] = files;
    const { source, said } = await open({ certFile, keyFile, clientCaFile: undefined });
    symlinkSync(version("second"), `${link}_tmp`);
    renameSync(`${link}_tmp`, link);
    await source.reload();
    expect(said(REPLACED)).toHaveLength(1);
    expect(said(REFUSED)).toEqual([]);
  });
});
