import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "@jest/globals";
import { ServeLogsRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { createMetrics, renderMetrics, systemClock } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { healthRoute } from "../../test/health-route.ts";
import { connectRaw, frame, POST_HEADERS, PREFACE } from "../../test/raw-http2.ts";
import { PolyglotListener } from "../connections/polyglot-listener.ts";
import { createGrpcServer } from "../grpc/grpc-server.ts";
import { type AnonymousAccounts, AnonymousLog } from "./anonymous-log.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Port {
  readonly port: number;
  readonly metrics: ReturnType<typeof createMetrics>;
  /** Number of handled calls. */
  calls(): number;
}

async function openApi(accounts?: AnonymousAccounts, tickMs = 20): Promise<Port> {
  const metrics = createMetrics({ defaults: false });
  let calls = 0;
  const listener = await PolyglotListener.listen({
    name: "api",
    host: "0.0.0.0",
    port: 0,
    firstByteMs: 60_000,
    maxConnections: 400,
    tickMs,
    log: captureLog().log,
    anonymousClients: new AnonymousLog({ log: captureLog().log, ...(accounts ? { accounts } : {}) }),
    metrics,
    clock: systemClock,
    handler: (_, response) => {
      calls += 1;
      if ("stream" in response) response.write("held");
    },
  });
  closers.push(() => listener.destroy());
  return { port: listener.port, metrics, calls: () => calls };
}

/** @param explains whether to report the bytes of a ServeLogs call as requested. */
async function openAgents({ explains = false } = {}): Promise<Port> {
  const metrics = createMetrics({ defaults: false });
  let calls = 0;
  const server = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    connectionTimes: { tickMs: 20 },
    log: captureLog().log,
    metrics,
    closeGraceMs: 100,
    routes: [
      healthRoute({
        serveLogs: {
          open: (call) => ({
            onFrame: ({ data }) => {
              if (explains) call.explain(data.byteLength);
            },
            onHalfClose: () => call.end(),
            onGone: () => {},
          }),
        },
        heartbeat: {
          open: (call) => {
            calls += 1;
            call.sendMetadata();
            return { onFrame: () => {}, onHalfClose: () => {}, onGone: () => {} };
          },
        },
      }),
    ],
  });
  closers.push(() => server.close());
  return { port: server.port, metrics, calls: () => calls };
}

/** Connect a client with a call that a flood must not disturb. */
async function bystander({ port }: Port): Promise<http2.ClientHttp2Session> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  closers.push(() => session.destroy());
  const stream = session.request(
    {
      ":method": "POST",
      ":path": "/rollcall.health.v1.HealthService/Heartbeat",
      "content-type": "application/grpc",
    },
    { endStream: false },
  );
  await once(stream, "response");
  return session;
}

/** Send data again and again until the server closes the connection. */
async function flood(socket: net.Socket, next: (round: number) => Buffer): Promise<void> {
  socket.write(PREFACE);
  for (let round = 0; !socket.destroyed && socket.writable; round += 1) {
    if (!socket.write(next(round))) {
      await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => {});
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Send a few frames repeatedly, each time after the previous ones were acknowledged, so that nothing queues up. */
async function floodInOrder(socket: net.Socket, few: Buffer, ackBytes: number): Promise<void> {
  let heard = 0;
  socket.on("data", (chunk: Buffer) => {
    heard += chunk.byteLength;
  });
  socket.write(PREFACE);
  while (!socket.destroyed && socket.writable) {
    const wanted = heard + ackBytes;
    socket.write(few);
    await until("they are acknowledged", () => heard >= wanted || socket.destroyed);
  }
}

const PING = frame("PING", { payload: Buffer.alloc(8) });
const SETTINGS = frame("SETTINGS", {});
const WINDOW_UPDATE = frame("WINDOW_UPDATE", { payload: Buffer.from([0, 0, 0, 0]).fill(1, 3) });
const PRIORITY = frame("PRIORITY", { stream: 3, payload: Buffer.from([0, 0, 0, 0, 16]) });

/**
 * Whether nghttp2 itself ends a session after some thousand PRIORITY frames, as it does since version 1.66. Node.js 22
 * may contain an older version.
 */
const NGHTTP2_LIMITS_PRIORITIES = Number(process.versions.nghttp2?.split(".")[1]) >= 66;

function resets(round: number): Buffer {
  const ids = Array.from({ length: 50 }, (_, index) => 1 + 2 * (round * 50 + index));
  return Buffer.concat(
    ids.flatMap((stream) => [
      frame("HEADERS", { flags: 5, stream, payload: POST_HEADERS }),
      frame("RST_STREAM", { stream, payload: Buffer.from([0, 0, 0, 8]) }),
    ]),
  );
}

/** Encode the headers of a call that does not declare its content type. */
function http2Headers(): Buffer {
  return Buffer.from([0x83, 0x86, 0x84, 0x41, 0x01, 0x61]);
}

function emptyFrames(round: number): Buffer {
  const frames = Array.from({ length: 500 }, () => frame("DATA", { stream: 1 }));
  if (round > 0) return Buffer.concat(frames);
  return Buffer.concat([frame("HEADERS", { flags: 4, stream: 1, payload: POST_HEADERS }), ...frames]);
}

function many(one: Buffer): () => Buffer {
  const all = Buffer.concat(Array.from({ length: 500 }, () => one));
  return () => all;
}

describe.each([
  ["the API's port", openApi],
  ["the agents' port", () => openAgents()],
] as const)("a flood on %s", (name, open) => {
  it.each([
    // Expect no particular reason, because with many pings in one packet, nghttp2's own limit applies too. Which limit
    // is reached first depends on how the packets arrive.
    ["pings", many(PING), null],
    ["settings", many(SETTINGS), null],
    ["calls that are reset at once", resets, "flood"],
    // Detect these frames by their bytes, because Node.js does not report them.
    ["frames without a byte", emptyFrames, null],
    ["window updates", many(WINDOW_UPDATE), "flood"],
    ["priorities", many(PRIORITY), NGHTTP2_LIMITS_PRIORITIES ? null : "flood"],
  ] as const)("should end its connection, and no other: %s", async (_, next, reason) => {
    const port = await open();
    const other = await bystander(port);
    const socket = await connectRaw(port.port);
    closers.push(() => socket.destroy());
    await flood(socket, next);
    const label = name === "the API's port" ? "api" : "agents";
    const counted = `rollcall_connections_ended_total{port="${label}",reason="${reason}"} 1`;
    const isCounted = async () => (await renderMetrics(port.metrics)).includes(counted);
    if (reason !== null) await until("it is counted", isCounted);
    expect(other.destroyed).toBe(false);
    expect(port.calls()).toBeLessThan(450);
    const pinged = new Promise((resolve) => other.ping((error) => resolve(error)));
    expect(await pinged).toBeNull();
  });

  it("should end only its connection: pings that are all answered", async () => {
    const port = await open();
    const other = await bystander(port);
    const socket = await connectRaw(port.port);
    closers.push(() => socket.destroy());
    await floodInOrder(socket, Buffer.concat(Array(250).fill(PING)), 250 * PING.byteLength);
    const label = name === "the API's port" ? "api" : "agents";
    const counted = `rollcall_connections_ended_total{port="${label}",reason="flood"} 1`;
    expect(await renderMetrics(port.metrics)).toContain(counted);
    expect(other.destroyed).toBe(false);
  });
});

describe.each([
  ["the API's port", openApi],
  ["the agents' port", () => openAgents()],
] as const)("calls on %s that are taken back in the same packet", (_, open) => {
  it.each([
    ["without an error", 0],
    ["with one", 2],
  ])("should not affect the process and other connections: %s", async (__, code) => {
    const port = await open();
    const other = await bystander(port);
    const socket = await connectRaw(port.port);
    closers.push(() => socket.destroy());
    const bare = http2Headers();
    const packet = [1, 3, 5, 7].flatMap((stream) => [
      frame("HEADERS", { flags: 4, stream, payload: bare }),
      frame("RST_STREAM", { stream, payload: Buffer.from([0, 0, 0, code]) }),
    ]);
    socket.write(Buffer.concat([PREFACE, ...packet, PING]));
    await once(socket, "data");
    const pinged = new Promise((resolve) => other.ping((error) => resolve(error)));
    expect(await pinged).toBeNull();
  });
});

describe("16 MB sent in one call", () => {
  const message = toBinary(ServeLogsRequestSchema, create(ServeLogsRequestSchema, { data: Buffer.alloc(62_500, "x") }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.byteLength, 1);
  const envelope = Buffer.concat([prefix, message]);

  /** Send the messages as fast as they are accepted. Resolves to the session. */
  async function bring(port: Port): Promise<http2.ClientHttp2Session> {
    const session = http2.connect(`http://127.0.0.1:${port.port}`).on("error", () => {});
    closers.push(() => session.destroy());
    const stream = session.request(
      {
        ":method": "POST",
        ":path": "/rollcall.health.v1.HealthService/ServeLogs",
        "content-type": "application/grpc",
      },
      { endStream: false },
    );
    const closed = new Promise((resolve) => stream.on("error", () => {}).on("close", resolve));
    stream.resume();
    for (let count = 0; count < 256 && !stream.destroyed; count += 1) {
      await Promise.race([new Promise((resolve) => stream.write(envelope, resolve)), closed]);
    }
    stream.end();
    await closed;
    return session;
  }

  it("should leave its connection open if its handler explains them", async () => {
    const port = await openAgents({ explains: true });
    const session = await bring(port);
    const pinged = new Promise((resolve) => session.ping((error) => resolve(error)));
    expect(await pinged).toBeNull();
    expect(await renderMetrics(port.metrics)).not.toContain('reason="flood"} 1');
  });

  it("should end its connection if its handler does not", async () => {
    const port = await openAgents();
    const session = await bring(port);
    await until("the session to end", () => session.destroyed);
    const counted = 'rollcall_connections_ended_total{port="agents",reason="flood"} 1';
    expect(await renderMetrics(port.metrics)).toContain(counted);
    const gone = 'rollcall_connections{port="agents",kind="anonymous"} 0';
    await until("its socket to close", async () => (await renderMetrics(port.metrics)).includes(gone));
  });
});

describe("a flood on the API's port", () => {
  it("should make only its address wait", async () => {
    const owing = new Set<string>();
    const spent: number[] = [];
    const port = await openApi({
      groupOf: (peer) => peer,
      isSpared: () => false,
      spend: (_, cost) => spent.push(cost),
      msUntilPaid: (address) => (owing.has(address) ? 10 : 0),
    });
    const socket = await connectRaw(port.port);
    closers.push(() => socket.destroy());
    await flood(socket, resets);
    expect(spent.reduce((sum, cost) => sum + cost)).toBeGreaterThan(1_000);
    owing.add("127.0.0.1");
    const session = http2.connect(`http://127.0.0.1:${port.port}`);
    closers.push(() => session.destroy());
    const answer = once(session.request({ ":path": "/" }), "response").then(() => "answered");
    const elsewhere = net.connect({
      port: port.port,
      host: "127.0.0.1",
      localAddress: "127.0.0.2",
    });
    const other = http2.connect("http://elsewhere", { createConnection: () => elsewhere });
    closers.push(() => other.destroy());
    await once(other.request({ ":path": "/" }), "response");
    expect(await Promise.race([answer, "waits"])).toBe("waits");
    owing.clear();
    expect(await answer).toBe("answered");
  });

  it("should be detected immediately among hundreds of silent new sessions", async () => {
    // Choose a tick so long that no regular checks run, so that only new sessions are checked.
    const accounts = { groupOf: String, isSpared: () => false, spend: () => {}, msUntilPaid: () => 0 };
    const port = await openApi(accounts, 3_600_000);
    const silent = Array.from({ length: 250 }, async () => {
      const socket = await connectRaw(port.port);
      closers.push(() => socket.destroy());
      socket.write(PREFACE);
      await once(socket, "data");
    });
    await Promise.all(silent);
    const socket = await connectRaw(port.port);
    closers.push(() => socket.destroy());
    const flooding = flood(socket, many(WINDOW_UPDATE));
    const counted = 'rollcall_connections_ended_total{port="api",reason="flood"} 1';
    await until("it is counted", async () => (await renderMetrics(port.metrics)).includes(counted));
    // Destroy the socket, because nothing else closes it without regular checks.
    socket.destroy();
    await flooding;
  });

  it("should not make new connections wait behind closed ones of their address", async () => {
    const owing = new Set(["127.0.0.1"]);
    const port = await openApi({
      groupOf: (peer) => peer,
      isSpared: () => false,
      spend: () => {},
      msUntilPaid: (address) => (owing.has(address) ? 10 : 0),
    });
    const gone = Array.from({ length: 20 }, async () => {
      const socket = await connectRaw(port.port);
      socket.end("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
      await once(socket, "close");
    });
    await Promise.all(gone);
    await until("0 wait", async () => (await renderMetrics(port.metrics)).includes('waiting{port="api"} 0'));
    const session = http2.connect(`http://127.0.0.1:${port.port}`);
    closers.push(() => session.destroy());
    const request = session.request({ ":path": "/", ":method": "POST" });
    request.end(Buffer.alloc(40_000));
    await until("1 wait", async () => (await renderMetrics(port.metrics)).includes('waiting{port="api"} 1'));
    owing.clear();
    await once(request, "response");
    expect(port.calls()).toBe(1);
  });

  it("should end its connection: settings that are all acknowledged", async () => {
    const port = await openApi();
    const socket = await connectRaw(port.port);
    closers.push(() => socket.destroy());
    await floodInOrder(socket, Buffer.concat(Array(25).fill(SETTINGS)), 25 * SETTINGS.byteLength);
    const counted = 'rollcall_connections_ended_total{port="api",reason="flood"} 1';
    expect(await renderMetrics(port.metrics)).toContain(counted);
  });
});
