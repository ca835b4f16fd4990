import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError } from "@rollcall/errors";
import { fetchAuthorities, TlsSource } from "@rollcall/identity";
import { renderMetrics, systemClock } from "@rollcall/process";
import { sendBearer } from "@rollcall/testkit";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { captureLog } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { TlsFixture } from "@rollcall/testkit/tls-fixture";
import { failureOf, RpcFixture } from "../../test/rpc-fixture.ts";
import { FirstLines } from "../../test/test-counts.ts";

let fixture: TlsFixture;
beforeEach(() => {
  fixture = new TlsFixture();
});
afterEach(() => fixture.end());

async function startApi(source: TlsSource, options: { readonly firstByteMs?: number } = {}) {
  const api = await RpcFixture.start({ tls: source, noise: new FirstLines(), ...options });
  fixture.atEnd(() => api.stop());
  return api;
}

function transportsTo(baseUrl: string, options: tls.SecureContextOptions) {
  const interceptors = [sendBearer("viewer-token")];
  const session = () => {
    const manager = new Http2SessionManager(baseUrl, undefined, options);
    fixture.atEnd(() => manager.abort());
    return manager;
  };
  const nodeOptions = { ...options, agent: false };
  const over1 = { baseUrl, interceptors, httpVersion: "1.1" as const, nodeOptions };
  const over2 = { baseUrl, interceptors, httpVersion: "2" as const };
  return {
    grpc: createGrpcTransport({ baseUrl, interceptors, sessionManager: session() }),
    "grpc-web": createGrpcWebTransport({ ...over2, sessionManager: session() }),
    "grpc-web-http1": createGrpcWebTransport(over1),
    connect: createConnectTransport({ ...over2, sessionManager: session() }),
    "connect-http1": createConnectTransport(over1),
  };
}

describe("createRpcServer() with TLS", () => {
  it("should support every protocol on one port, by ALPN", async () => {
    const { server } = await startApi(await fixture.openSource());
    const transports = transportsTo(`https://127.0.0.1:${server.port}`, fixture.clientTls());
    for (const transport of Object.values(transports)) {
      const client = createClient(RegistryService, transport);
      expect((await client.getNode({ node: "n1" })).node?.id).toBe("n1");
    }
    const plain = await new Promise((resolve) => {
      const url = `https://localhost:${server.port}/nothing`;
      https.get(url, { ...fixture.clientTls(), agent: false }, (response) => resolve(response.statusCode));
    });
    expect(plain).toBe(404);
  });

  it("should serve its authority over HTTP/1.1 and HTTP/2 to clients that trust nothing yet", async () => {
    const { authority } = fixture;
    const files = { ...authority.write("server"), clientCaFile: undefined, caFile: authority.caFile };
    const source = await TlsSource.open({ files, clock: systemClock, log: captureLog().log });
    const { server } = await startApi(source);
    const { port } = server;
    const served = await fetchAuthorities({ host: "127.0.0.1", port }, new AbortController().signal);
    expect(served.map(String)).toEqual([source.authority]);
    const session = http2.connect(`https://127.0.0.1:${port}`, fixture.clientTls());
    fixture.atEnd(() => session.destroy());
    const stream = session.request({ ":path": "/ca.pem" });
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(200);
    expect(String((await stream.toArray()).join(""))).toBe(source.authority);
  });

  it("should refuse a client that trusts another authority or asks for another name, and log it once", async () => {
    const { server, lines } = await startApi(await fixture.openSource());
    for (let times = 0; times < 3; times += 1) {
      const socket = tls.connect({ port: server.port, host: "127.0.0.1" });
      const [error] = await once(socket, "error");
      expect(error).toMatchObject({ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" });
    }
    // Lower the security level. Otherwise, OpenSSL on the client itself would refuse the version, before it sends
    // anything to the server.
    const ciphers = "DEFAULT:@SECLEVEL=0";
    const old = tls.connect({ port: server.port, maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers });
    await once(old, "error");
    const failures = () => lines.filter(({ msg }) => msg === "tls handshake failed");
    await until("the line of an old version", () => failures().length > 0);
    expect(failures().filter(({ reason }) => reason === "version")).toHaveLength(1);
  });

  it("should refuse a clear-text client in its own protocol, and log it once", async () => {
    const { server, lines, metrics } = await startApi(await fixture.openSource());
    for (const transport of Object.values(transportsTo(`http://127.0.0.1:${server.port}`, {}))) {
      const failure = await failureOf(createClient(RegistryService, transport).getNode({ node: "n" }));
      expect(describeError(failure)).toMatchObject({
        reason: "TLS_REQUIRED",
        message: expect.stringContaining("https://"),
      });
    }
    const text = await fetch(`http://127.0.0.1:${server.port}/`).then((answer) => answer.text());
    expect(text).toContain("this port requires TLS");
    const refused = lines.filter(({ msg }) => msg === "refused clear text on a TLS port");
    expect(refused).toHaveLength(1);
    expect(await renderMetrics(metrics)).toMatch(/failures_total\{reason="plaintext"\} [5-9]/);
  });

  it("should cut connections that send nothing, no handshake, or no request", async () => {
    const { server } = await startApi(await fixture.openSource(), { firstByteMs: 100 });
    const silent = net.connect(server.port, "127.0.0.1");
    const halting = net.connect(server.port, "127.0.0.1");
    halting.write(Buffer.from([0x16, 3, 1]));
    const idle = tls.connect({ port: server.port, host: "127.0.0.1", ...fixture.clientTls() });
    await Promise.all(
      [silent, halting, idle].map((socket) => {
        socket.on("error", () => {});
        socket.resume();
        return once(socket, "close");
      }),
    );
  });

  it("should ask for a certificate if clients need one, and report what is wrong with theirs", async () => {
    const { server, lines } = await startApi(await fixture.openSource(true));
    const url = `https://127.0.0.1:${server.port}`;
    for (const transport of Object.values(transportsTo(url, fixture.clientTls(true)))) {
      const client = createClient(RegistryService, transport);
      expect((await client.getNode({ node: "n1" })).node?.id).toBe("n1");
    }
    const other = new TestAuthority();
    fixture.atEnd(() => rmSync(other.dir, { recursive: true, force: true }));
    const { certPem, keyPem } = other.issue({ usage: "client" });
    for (const options of [fixture.clientTls(), { ...fixture.clientTls(), cert: certPem, key: keyPem }]) {
      for (const transport of Object.values(transportsTo(url, options))) {
        const client = createClient(RegistryService, transport);
        expect(describeError(await failureOf(client.getNode({ node: "n" })))).toMatchObject({
          reason: "CLIENT_CERTIFICATE_REQUIRED",
        });
      }
    }
    expect(lines.filter(({ reason }) => reason === "client_certificate")).toHaveLength(1);
  });

  it("should not admit a client that resumes a session without a certificate", async () => {
    const { server } = await startApi(await fixture.openSource(true));
    const connect = (session?: Buffer) =>
      tls.connect({
        ...{ port: server.port, host: "127.0.0.1", ...fixture.clientTls() },
        ...(session === undefined ? {} : { session }),
      });
    const answerOn = async (socket: tls.TLSSocket) => {
      socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
      const [answer] = await once(socket, "data");
      const reused = socket.isSessionReused();
      socket.destroy();
      return { answer: String(answer), reused };
    };
    const first = connect();
    let ticket: Buffer | undefined;
    first.on("session", (session) => {
      ticket = session;
    });
    const refused = { answer: expect.stringMatching(/^HTTP\/1.1 401/), reused: false };
    expect(await answerOn(first)).toEqual(refused);
    expect(await answerOn(connect(ticket))).toEqual(refused);
  });

  it("should use a new certificate for new connections, and keep existing ones", async () => {
    const source = await fixture.openSource();
    const { server } = await startApi(source);
    const standing = http2.connect(`https://127.0.0.1:${server.port}`, fixture.clientTls());
    fixture.atEnd(() => standing.destroy());
    await once(standing, "connect");
    const before = await fixture.serialOf(server.port);
    fixture.authority.write("server");
    await source.reload();
    expect(await fixture.serialOf(server.port)).not.toBe(before);
    await new Promise<void>((resolve, reject) =>
      standing.ping((error) => (error === null ? resolve() : reject(error))),
    );
    const last = await fixture.serialOf(server.port);
    writeFileSync(`${fixture.authority.dir}/server.pem`, "broken");
    await source.reload();
    expect(await fixture.serialOf(server.port)).toBe(last);
  });

  it("should close with all its connections", async () => {
    const api = await RpcFixture.start({ tls: await fixture.openSource() });
    const { port } = api.server;
    const { grpc } = transportsTo(`https://127.0.0.1:${port}`, fixture.clientTls());
    await createClient(RegistryService, grpc).getNode({ node: "n1" });
    const halting = net.connect(port, "127.0.0.1");
    halting.on("error", () => {});
    halting.write(Buffer.from([0x16, 3, 1]));
    await once(halting, "connect");
    await api.stop();
    expect(api.lines.filter(({ msg }) => msg === "calls in progress were cut")).toEqual([]);
  });
});
