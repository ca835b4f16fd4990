import { once } from "node:events";
import tls from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { TlsSource } from "@rollcall/identity";
import { createMetrics } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { TlsFixture } from "@rollcall/testkit/tls-fixture";
import { RpcFixture } from "../../test/rpc-fixture.ts";
import { createProbeServer } from "../builtins/probe-server.ts";
import { createGrpcServer } from "../grpc/grpc-server.ts";

let fixture: TlsFixture;
beforeEach(() => {
  fixture = new TlsFixture();
});
afterEach(() => fixture.end());

/** Start every kind of port, all with the same certificate. */
async function startPorts(source: TlsSource): Promise<Readonly<Record<string, number>>> {
  const common = { host: "127.0.0.1", port: 0, log: captureLog().log };
  const own = () => ({ ...common, metrics: createMetrics({ defaults: false }), tls: source });
  const api = await RpcFixture.start({ tls: source });
  fixture.atEnd(() => api.stop());
  const agents = await createGrpcServer({ ...own(), routes: [], closeGraceMs: 100 });
  fixture.atEnd(() => agents.close());
  const probes = await createProbeServer({ ...own(), ready: () => ({}) });
  fixture.atEnd(() => probes.close());
  return { api: api.server.port, agents: agents.port, probes: probes.port };
}

/**
 * Connect with these ciphers. Returns the cipher suite that the port and the client agree on, or the error code
 * if they find none.
 */
async function agree(port: number, ciphers: string, version: "TLSv1.2" | "TLSv1.3") {
  const socket = tls.connect({
    ...{ port, host: "127.0.0.1", ...fixture.clientTls() },
    ...{ ciphers, minVersion: version, maxVersion: version },
    ALPNProtocols: ["h2", "http/1.1"],
  });
  try {
    await once(socket, "secureConnect");
    return socket.getCipher().name;
  } catch (error) {
    return (error as { readonly code?: string }).code;
  } finally {
    socket.destroy();
  }
}

const REFUSED = /ERR_SSL_\S+_ALERT_HANDSHAKE_FAILURE$/;

describe("TLS cipher suites", () => {
  it("should only use authenticated encryption on every port, even after certificates change", async () => {
    const source = await fixture.openSource();
    const ports = await startPorts(source);
    for (const round of ["first", "second"]) {
      for (const [name, port] of Object.entries(ports)) {
        const where = `${name}, ${round} certificate`;
        for (const weak of [
          "ECDHE-ECDSA-AES128-SHA",
          "ECDHE-ECDSA-AES256-SHA",
          "ECDHE-ECDSA-AES128-SHA256",
          "ECDHE-ECDSA-AES256-SHA384",
        ]) {
          expect(`${where}: ${await agree(port, weak, "TLSv1.2")}`).toMatch(REFUSED);
        }
        for (const good of [
          "ECDHE-ECDSA-AES128-GCM-SHA256",
          "ECDHE-ECDSA-AES256-GCM-SHA384",
          "ECDHE-ECDSA-CHACHA20-POLY1305",
        ]) {
          expect([where, await agree(port, good, "TLSv1.2")]).toEqual([where, good]);
        }
        for (const good of tls.DEFAULT_CIPHERS.split(":").filter((it) => it.startsWith("TLS_"))) {
          expect([where, await agree(port, good, "TLSv1.3")]).toEqual([where, good]);
        }
      }
      fixture.authority.write("server");
      await source.reload();
    }
  });

  it("should not use CBC, SHA-1 or static keys for certificates with RSA keys either", async () => {
    const { ciphers = "" } = (await fixture.openSource()).context;
    for (const suite of ciphers.split(":")) {
      expect(suite).toMatch(/^(TLS_|ECDHE-(RSA|ECDSA)-).*(GCM[-_]SHA\d+|CHACHA20[-_]POLY1305.*)$/);
    }
    expect(ciphers).toContain("ECDHE-RSA-AES128-GCM-SHA256");
  });
});
