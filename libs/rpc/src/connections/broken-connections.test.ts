import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import http2 from "node:http2";
import type net from "node:net";
import type tls from "node:tls";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { credentials, Client as GrpcClient } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import type { TlsSource } from "@rollcall/identity";
import { createMetrics, renderMetrics, systemClock } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { TlsFixture } from "@rollcall/testkit/tls-fixture";
import { healthRoute } from "../../test/health-route.ts";
import { BREAKING, connectRaw, frame, PREFACE } from "../../test/raw-http2.ts";
import { createGrpcServer } from "../grpc/grpc-server.ts";
import { AnonymousLog } from "../limits/anonymous-log.ts";
import { PolyglotListener } from "./polyglot-listener.ts";

const MOST = 50;
const BROKEN = 20;
/** How many connections to open at the same time: fewer than the limit of the port in this test. */
const TOGETHER = 40;
const fixture = new TlsFixture();
let source: TlsSource;
beforeAll(async () => {
  source = await fixture.openSource();
});
afterAll(async () => await fixture.end());

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Port {
  readonly port: number;
  /** Make a call. Resolves once it is answered. */
  call(): Promise<unknown>;
  metrics(): Promise<string>;
}

/** @param answerMs how long a peer can take to answer a ping. */
async function openApi(isSecure: boolean, answerMs = 20_000): Promise<Port> {
  const metrics = createMetrics({ defaults: false });
  const listener = await PolyglotListener.listen({
    name: "api",
    host: "127.0.0.1",
    port: 0,
    firstByteMs: 60_000,
    maxConnections: MOST,
    tickMs: 20,
    answerMs,
    log: captureLog().log,
    anonymousClients: new AnonymousLog({ log: captureLog().log }),
    metrics,
    clock: systemClock,
    handler: (_, response) => response.end("served"),
    ...(isSecure ? { tls: { source } } : {}),
  });
  closers.push(() => listener.destroy());
  const { port } = listener;
  const call = async () => {
    const origin = `${isSecure ? "https" : "http"}://127.0.0.1:${port}`;
    const session = http2.connect(origin, { ca: caOf(true) });
    try {
      await once(session.request({ ":path": "/" }).resume(), "end");
    } finally {
      session.destroy();
    }
  };
  return { port, call, metrics: () => renderMetrics(metrics) };
}

async function openAgents(isSecure: boolean, answerMs = 20_000): Promise<Port> {
  const metrics = createMetrics({ defaults: false });
  const server = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    maxConnections: MOST,
    connectionTimes: { tickMs: 20, answerMs },
    log: captureLog().log,
    metrics,
    routes: [
      healthRoute({
        heartbeat: {
          open: (call) => {
            call.end();
            return { onFrame: () => {}, onHalfClose: () => {}, onGone: () => {} };
          },
        },
      }),
    ],
    ...(isSecure ? { tls: source } : {}),
  });
  closers.push(() => server.close());
  const { port } = server;
  const call = async () => {
    const channel = isSecure ? credentials.createSsl(caOf(true)) : credentials.createInsecure();
    const client = new GrpcClient(`127.0.0.1:${port}`, channel, { "grpc.ssl_target_name_override": "localhost" });
    try {
      const path = "/rollcall.health.v1.HealthService/Heartbeat";
      const same = (bytes: Buffer) => bytes;
      await once(client.makeBidiStreamRequest(path, same, same).resume(), "end");
    } finally {
      client.close();
    }
  };
  return { port, call, metrics: () => renderMetrics(metrics) };
}

function caOf(isSecure: boolean): Buffer | undefined {
  return isSecure ? readFileSync(fixture.authority.caFile) : undefined;
}

/** Count the open file descriptors of this process, which holds both ends of each connection. */
function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

async function breakOne(port: number, ca: Buffer | undefined, bytes: Buffer): Promise<void> {
  const socket = await connectRaw(port, ca).catch(() => null);
  if (socket === null) return;
  socket.write(Buffer.concat([PREFACE, bytes]));
  // Wait until the client has read the server's reaction: settings, or the end of the connection.
  await Promise.race([once(socket, "data"), closed(socket)]);
  socket.destroy();
}

async function closed(socket: net.Socket | tls.TLSSocket): Promise<void> {
  if (!socket.destroyed) await once(socket, "close").catch(() => {});
}

describe.each([
  ["the API's port", openApi],
  ["the agents' port", openAgents],
] as const)("broken connections on %s", (_, open) => {
  it.each([
    ["in clear text", false],
    ["over TLS", true],
  ])("should neither stay open nor block other clients, %s", async (_, isSecure) => {
    const { port, call, metrics } = await open(isSecure);
    await call();
    const ca = caOf(isSecure);
    const [, first] = BREAKING[0] ?? [];
    await breakOne(port, ca, first ?? Buffer.alloc(0));
    const atFirst = await until("the first connections are gone", async () =>
      (await metrics()).includes('kind="anonymous"} 0') ? descriptors() : null,
    );
    for (const [, bytes] of BREAKING) {
      for (let count = 0; count < BROKEN; count += 20) {
        await Promise.all(Array.from({ length: 20 }, () => breakOne(port, ca, bytes)));
      }
      await call();
    }
    // Either Node.js ends this session itself, or the checks find it because its ping is never sent.
    await until("the descriptors are back", () => descriptors() <= atFirst);
    await call();
  });

  it("should be cut if they do not answer pings", async () => {
    const { port, call, metrics } = await open(false, 100);
    const socket = await connectRaw(port);
    socket.write(Buffer.concat([PREFACE, frame("SETTINGS", { flags: 1 })]));
    await closed(socket);
    expect(await metrics()).toMatch(/reason="unresponsive"\} 1$/m);
    await call();
  });

  it("should leave nothing in memory when the session fails before the peer has acknowledged its settings", async () => {
    const { port, metrics } = await open(false);
    const kept = watchAccepted();
    for (let count = 0; count < BROKEN; count += 1) {
      const socket = await connectRaw(port);
      socket.write(Buffer.concat([PREFACE, OVERFLOWING_WINDOW]), () => socket.destroy());
      await closed(socket);
    }
    await until("all connections are gone", async () => (await metrics()).includes('kind="anonymous"} 0'));
    await until("their sockets are collected", () => kept(BROKEN) < BROKEN / 4);
  });

  it("should leave nothing in memory when they close at the same time", async () => {
    const { port, metrics } = await open(false);
    const kept = watchAccepted();
    const sockets = await Promise.all(Array.from({ length: TOGETHER }, () => openUntilAsked(port)));
    for (const socket of sockets) socket.destroy();
    await until("all connections are gone", async () => (await metrics()).includes('kind="anonymous"} 0'));
    await until("their sockets are collected", () => kept(TOGETHER) < TOGETHER / 8);
  });
});

/** Unlike the frames in BREAKING, nghttp2 reports this frame, and Node.js ends the session with an error. */
const OVERFLOWING_WINDOW = frame("WINDOW_UPDATE", {
  payload: Buffer.from([0x7f, 0xff, 0xff, 0xff]),
});

/** Open a connection and wait until the server first pings it. */
async function openUntilAsked(port: number): Promise<net.Socket> {
  const socket = await connectRaw(port);
  const asked = frame("PING", { payload: Buffer.alloc(8) }).subarray(0, 9);
  let read = Buffer.alloc(0);
  await new Promise<void>((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      read = Buffer.concat([read, chunk]);
      if (read.includes(asked)) resolve();
    });
    socket.write(Buffer.concat([PREFACE, frame("SETTINGS", { flags: 1 })]));
  });
  return socket;
}

/**
 * Track the sockets that servers of this process accept from now on. Returns a function that counts the sockets that
 * are still in memory. Recent code may still hold a few of them for a while.
 */
function watchAccepted(): (least: number) => number {
  const accepted: WeakRef<object>[] = [];
  const note = (message: unknown) => {
    accepted.push(new WeakRef((message as { readonly socket: net.Socket }).socket));
  };
  subscribe("net.server.socket", note);
  closers.push(() => unsubscribe("net.server.socket", note));
  return (least) => {
    expect(accepted.length).toBeGreaterThanOrEqual(least);
    collectGarbage();
    return accepted.filter((it) => it.deref() !== undefined).length;
  };
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc()");
}
