import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { TlsFixture } from "@rollcall/testkit/tls-fixture";
import { certificateOf, fetchAuthority, fingerprintOf, parseFingerprint } from "./authority.ts";

const never = new AbortController().signal;
const DIGITS = "0123456789abcdef".repeat(4);
const COLONS = DIGITS.toUpperCase().match(/../g)?.join(":") ?? "";

let fixture: TlsFixture;
beforeEach(() => {
  fixture = new TlsFixture();
});
afterEach(() => fixture.end());

/** Start a server with a certificate of the fixture's authority. Returns its port. */
async function serve(answer: RequestListener): Promise<number> {
  const { certPem, keyPem } = fixture.authority.issue();
  const server = createServer({ cert: certPem, key: keyPem }, answer);
  fixture.atEnd(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

const read = (file: string) => readFileSync(file, "utf8");
const fingerprintIn = (pem: string) => fingerprintOf(new X509Certificate(pem));

describe("parseFingerprint()", () => {
  it.each([
    [`sha256:${DIGITS}`],
    [`SHA256:${DIGITS.toUpperCase()}`],
    [DIGITS],
    [COLONS],
    [`sha256 Fingerprint=${COLONS}`],
    [` sha256:${COLONS}\n`],
  ])("should read %j", (text) => {
    expect(parseFingerprint(text)).toBe(`sha256:${DIGITS}`);
  });

  it.each([[""], ["sha256:"], [DIGITS.slice(1)], [`${DIGITS}0`], [`sha1:${DIGITS}`], [DIGITS.replace("a", "g")]])(
    "should refuse %j",
    (text) => {
      expect(parseFingerprint(text)).toBeNull();
    },
  );
});

describe("fetchAuthority()", () => {
  it("should find the authority by its fingerprint", async () => {
    const ca = read(fixture.authority.caFile);
    const other = new TestAuthority(fixture.authority.dir);
    const asked: unknown[] = [];
    const port = await serve(({ url, headers }, response) => {
      asked.push({ url, host: headers.host, authorization: headers.authorization });
      response.end(`${read(other.caFile)}${ca}`);
    });
    const pem = await fetchAuthority({ host: "127.0.0.1", port, serverName: "a.example" }, fingerprintIn(ca), never);
    expect(pem.trim()).toBe(ca.trim());
    expect(asked).toEqual([{ url: "/ca.pem", host: `a.example:${port}`, authorization: undefined }]);
  });

  it("should report both fingerprints of another authority", async () => {
    const ca = read(fixture.authority.caFile);
    const port = await serve((_, response) => response.end(ca));
    const fetching = fetchAuthority({ host: "127.0.0.1", port }, `sha256:${DIGITS}`, never);
    await expect(fetching).rejects.toThrow(`has the fingerprint ${fingerprintIn(ca)}, not sha256:${DIGITS}`);
  });

  it.each<[string, RequestListener, RegExp]>([
    ["knows of none", (_, response) => response.writeHead(404).end(), /serves no authority \(status 404\)/],
    ["wants a certificate first", (_, response) => response.writeHead(401).end(), /only to clients with a certificate/],
    ["answers something else", (_, response) => response.end("<html>"), /contains no PEM certificate/],
    ["never ends", (_, response) => response.end("x".repeat(100_000)), /more than 65536 bytes/],
  ])("should say what is wrong with a server that %s", async (_, answer, problem) => {
    const port = await serve(answer);
    await expect(fetchAuthority({ host: "127.0.0.1", port }, `sha256:${DIGITS}`, never)).rejects.toThrow(problem);
  });

  it("should verify the server when an authority is given", async () => {
    const ca = read(fixture.authority.caFile);
    const port = await serve((_, response) => response.end(ca));
    const server = { host: "127.0.0.1", port, trusted: ca };
    await expect(fetchAuthority(server, fingerprintIn(ca), never)).resolves.toContain("BEGIN CERTIFICATE");
    await expect(fetchAuthority({ ...server, serverName: "other.example" }, fingerprintIn(ca), never)).rejects.toThrow(
      "altnames",
    );
    const others = read(new TestAuthority(fixture.authority.dir).caFile);
    await expect(fetchAuthority({ ...server, trusted: others }, fingerprintIn(ca), never)).rejects.toThrow();
  });
});

describe("certificateOf()", () => {
  it("should find a stored certificate, and nothing in damaged PEM", () => {
    const ca = read(fixture.authority.caFile);
    expect(certificateOf(ca, fingerprintIn(ca))?.trim()).toBe(ca.trim());
    expect(certificateOf(ca, `sha256:${DIGITS}`)).toBeNull();
    expect(certificateOf(ca.slice(0, 100), fingerprintIn(ca))).toBeNull();
    expect(certificateOf("", fingerprintIn(ca))).toBeNull();
  });
});
