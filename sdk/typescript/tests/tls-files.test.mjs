// Tests replacing TLS files while a client runs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client } from "@rollcall/client";

const EMPTY_MESSAGE = Buffer.alloc(5);

/**
 * Create a self-signed certificate for this machine. Returns the certificate and its key.
 * @param {string} folder
 * @param {string} name
 */
function selfSigned(folder, name) {
  const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}-key.pem`)];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", keyFile];
  const names = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-days", "1", ...key, ...names, "-out", certFile], { stdio: "pipe" });
  return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

/**
 * Start a registry with TLS that responds to every call.
 * @param {import("node:test").TestContext} t
 * @param {http2.SecureServerOptions} options
 */
async function listen(t, options) {
  const server = http2.createSecureServer(options);
  /** @type {Set<http2.Http2Session>} */
  const sessions = new Set();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {}).once("close", () => sessions.delete(session));
  });
  server.on("stream", (/** @type {http2.ServerHttp2Stream} */ stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(EMPTY_MESSAGE);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { server, sessions, url: `https://127.0.0.1:${port}` };
}

test("a replaced authority file is read again", { timeout: 120_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-tls-files-"));
  const [former, next] = [selfSigned(folder, "former"), selfSigned(folder, "next")];
  const { server, sessions, url } = await listen(t, former);
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, former.cert);
  const client = new Client({ server: url, token: "rca_unused", caFile });
  t.after(() => {
    client.close();
    rmSync(folder, { recursive: true });
  });
  await client.registry.getNode({ node: "n" });
  // The file is half written, so the existing connection still serves the call.
  writeFileSync(caFile, "-----BEGIN CERT");
  await client.registry.getNode({ node: "n" });
  const [first] = sessions;
  assert.ok(first);
  server.setSecureContext(next);
  writeFileSync(caFile, next.cert);
  const ended = new Promise((resolve) => first.once("close", resolve));
  await Promise.all(Array.from({ length: 4 }, () => client.registry.getNode({ node: "n" })));
  await ended;
  assert.equal(sessions.size, 1);
});

test("a half replaced client certificate is not used", { timeout: 120_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-tls-files-"));
  const [own, former, next] = ["own", "former", "next"].map((name) => selfSigned(folder, name));
  assert.ok(own && former && next);
  const { server, url } = await listen(t, { ...own, requestCert: true, rejectUnauthorized: false });
  /** @type {string[]} */
  const presented = [];
  server.on("secureConnection", (/** @type {import("node:tls").TLSSocket} */ socket) => {
    presented.push(String(socket.getPeerCertificate().subject?.CN));
  });
  const [caFile, certificateFile, keyFile] = ["ca.pem", "client.pem", "client-key.pem"].map((it) => join(folder, it));
  assert.ok(caFile && certificateFile && keyFile);
  writeFileSync(caFile, own.cert);
  writeFileSync(certificateFile, former.cert);
  writeFileSync(keyFile, former.key);
  const clientCertificate = { certificateFile, keyFile };
  const client = new Client({ server: url, token: "rca_unused", caFile, clientCertificate });
  t.after(() => {
    client.close();
    rmSync(folder, { recursive: true });
  });
  await client.registry.getNode({ node: "n" });
  writeFileSync(certificateFile, next.cert);
  await client.registry.getNode({ node: "n" });
  assert.deepEqual(presented, ["former"]);
  writeFileSync(keyFile, next.key);
  await client.registry.getNode({ node: "n" });
  assert.deepEqual(presented, ["former", "next"]);
});
