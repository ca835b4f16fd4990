import { once } from "node:events";
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { Http2SessionManager } from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Health, HealthCheckResponse_ServingStatus } from "@rollcall/api/grpc/health/v1/health_pb";
import { readClientTls, TlsSource } from "@rollcall/identity";
import { silentLogger, systemClock } from "@rollcall/process";
import { TlsFixture } from "@rollcall/testkit/tls-fixture";
import { RpcFixture } from "../../test/rpc-fixture.ts";
import { connectPeer, type PeerTls } from "./peer-connection.ts";

let fixture: TlsFixture;
beforeEach(() => {
  fixture = new TlsFixture();
});
afterEach(() => fixture.end());

/** Return TLS options of a process that trusts the fixture's authority, and has its own certificate for these names. */
function trusting(...names: readonly string[]): PeerTls {
  const { caFile } = fixture.authority;
  return { read: () => readClientTls({ ...NO_FILES, caFile }), ownNames: () => names };
}

async function ask(port: number, tls: PeerTls | null): Promise<unknown> {
  const address = `127.0.0.1:${port}`;
  const peer = connectPeer({ address, interceptors: [], timeoutMs: 60_000, tls });
  try {
    return (await peer.client(Health).check({})).status;
  } catch (error) {
    return String(error);
  } finally {
    peer.close();
  }
}

const NO_FILES = { certFile: undefined, keyFile: undefined, serverName: undefined };
const SERVING = HealthCheckResponse_ServingStatus.SERVING;

describe("connectPeer() over TLS", () => {
  it("should only connect to a peer whose certificate names its address or a name of our own certificate", async () => {
    const { authority } = fixture;
    const startWith = async (names: readonly string[]) => {
      const files = { ...authority.write(names.join("-"), { names }), clientCaFile: undefined };
      const tls = await TlsSource.open({ files, clock: systemClock, log: silentLogger });
      const api = await RpcFixture.start({ tls });
      fixture.atEnd(() => api.stop());
      return { port: api.server.port, names: tls.names };
    };
    const { port: address } = await startWith(["127.0.0.1"]);
    const { port: name, names } = await startWith(["rollcall.example", "10.9.8.7"]);
    expect(names).toEqual(["rollcall.example", "10.9.8.7"]);
    expect(await ask(address, trusting())).toBe(SERVING);
    expect(await ask(name, trusting("rollcall.example"))).toBe(SERVING);
    expect(await ask(name, trusting("other.example"))).toContain("does not match");
    expect(await ask(address, null)).toContain("TLS");
    const anonymousClients = new TlsFixture();
    fixture.atEnd(() => anonymousClients.end());
    const { caFile } = anonymousClients.authority;
    const other = { ...trusting(), read: () => readClientTls({ ...NO_FILES, caFile }) };
    expect(await ask(address, other)).not.toBe(SERVING);
  });

  it("should need no client certificate if none is requested, whatever other ports require", async () => {
    const tls = await fixture.openSource(true);
    const api = await RpcFixture.start({ tls, asksClients: false });
    fixture.atEnd(() => api.stop());
    expect(await ask(api.server.port, trusting())).toBe(SERVING);
  });
});

describe("Http2SessionManager of connect-node", () => {
  it("should not end the process when a connection is closed just as its peer disconnects", async () => {
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
    fixture.atEnd(() => new Promise((resolve) => server.close(resolve)));
    const accepted = once(server, "session") as Promise<[ServerHttp2Session]>;
    server.on("stream", (stream: ServerHttp2Stream) => stream.respond({ ":status": 200 }, { endStream: true }));
    const manager = new Http2SessionManager(`http://127.0.0.1:${port}`);
    const stream = await manager.request("POST", "/", {}, {});
    const { session } = stream;
    if (session === undefined) throw new Error("the stream has no session");
    stream.resume().end();
    await once(stream, "close");
    const [peer] = await accepted;
    fixture.atEnd(() => peer.destroy());
    peer.goaway();
    await new Promise((resolve) => session.once("goaway", resolve));
    manager.abort();
    // If the session emitted "error", the test would fail, because nothing listens for it here.
    await new Promise((resolve) => session.once("close", resolve));
  });
});
