import { once } from "node:events";
import http2 from "node:http2";
import type { Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { describeError, refuse } from "@rollcall/errors";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { healthRoute } from "../../test/health-route.ts";
import { connectRaw, frame, POST_HEADERS, PREFACE } from "../../test/raw-http2.ts";
import { MESSAGE_LIMIT_BYTES } from "../server-options.ts";
import type { FrameCall, FrameHandler } from "./frame-call.ts";
import { errorFromGrpc } from "./grpc-error.ts";
import { createGrpcServer } from "./grpc-server.ts";

type Call = FrameCall<HeartbeatRequest>;
const METHOD = "rollcall.health.v1.HealthService/Heartbeat";

/** The sequence number of a Beat for which the handler fails. */
const FAILING = 99;
/** The sequence number of a Beat with which the handler pauses the call. */
const PAUSING = 98;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Start an agents' port. Each call first sends `first` frames, records its events, and acknowledges each Beat. */
async function start(first = 0) {
  const { log, lines } = captureLog();
  const metrics = createMetrics({ defaults: false });
  const calls: Call[] = [];
  const told: string[] = [];
  const heartbeat: FrameHandler<HeartbeatRequest> = {
    open: (call) => {
      calls.push(call);
      for (let count = 0; count < first; count += 1) call.write(ack(7));
      return {
        onFrame: ({ frame }) => {
          if (frame.case === "beat" && frame.value.sequence === FAILING) throw new Error("as it was told");
          told.push(frame.case === "beat" ? `beat ${frame.value.sequence}` : "other");
          if (frame.case === "beat") call.write(ack(frame.value.sequence));
          if (frame.case === "beat" && frame.value.sequence === PAUSING) call.pause();
        },
        onHalfClose: () => {
          told.push("half-close");
          call.end();
        },
        onGone: () => told.push("gone"),
      };
    },
  };
  const server = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: [healthRoute({ heartbeat })],
    log,
    metrics,
    closeGraceMs: 200,
  });
  closers.push(() => server.close());
  return {
    server,
    lines,
    calls,
    told,
    counted: async (code: string) =>
      Number(
        new RegExp(`rollcall_rpc_duration_seconds_count{method="${METHOD}",code="${code}"} (\\d+)`).exec(
          await renderMetrics(metrics),
        )?.[1] ?? 0,
      ),
  };
}

function ack(sequence: number): Buffer {
  const value = { sequence };
  return Buffer.from(
    toBinary(HeartbeatResponseSchema, create(HeartbeatResponseSchema, { frame: { case: "ack", value } })),
  );
}

function envelope(message: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([header, message]);
}

function beat(sequence: number): Buffer {
  const value = { sequence };
  return envelope(toBinary(HeartbeatRequestSchema, create(HeartbeatRequestSchema, { frame: { case: "beat", value } })));
}

/** Encode an HPACK literal. Its name is in the static table or follows in the literal. */
function header(name: readonly number[], value: string): Buffer {
  return Buffer.concat([Buffer.from([...name, value.length]), Buffer.from(value)]);
}

const HEARTBEAT_HEADERS = Buffer.concat([
  POST_HEADERS.subarray(0, 2),
  header([0x04], `/${METHOD}`),
  header([0x01], "a"),
  header([0x0f, 0x10], "application/grpc"),
]);
/** A header field of 10,000 bytes, so that its length takes three bytes. */
const LONG_HEADER = Buffer.concat([Buffer.from([0, 1, 0x78, 0x7f, 0x91, 0x4d]), Buffer.alloc(10_000, "y")]);
const RESET = frame("RST_STREAM", { stream: 1, payload: Buffer.from([0, 0, 0, 8]) });
/** A GOAWAY for an internal error, with last stream 1. */
const GOAWAY = frame("GOAWAY", { payload: Buffer.from([0, 0, 0, 1, 0, 0, 0, 2]) });
/** The envelope header of a message that is too large. */
const TOO_LARGE = envelope(Buffer.alloc(MESSAGE_LIMIT_BYTES + 1)).subarray(0, 5);

/** Connect and send the headers of a call, one frame per part. */
async function rawCall(port: number, parts: readonly Buffer[]): Promise<Socket> {
  const socket = await connectRaw(port);
  closers.push(() => socket.destroy());
  socket.write(Buffer.concat([PREFACE, frame("SETTINGS", { flags: 1 })]));
  const last = parts.length - 1;
  parts.forEach((payload, index) => {
    socket.write(
      frame(index === 0 ? "HEADERS" : "CONTINUATION", { flags: index === last ? 4 : 0, stream: 1, payload }),
    );
  });
  return socket;
}

/** Whether a server's output contains RST_STREAM for stream 1, or GOAWAY. */
function resets(bytes: Buffer): boolean {
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === 3 || bytes[at + 3] === 7) return true;
  }
  return false;
}

function connect(port: number, settings: http2.Settings = {}): http2.ClientHttp2Session {
  const session = http2.connect(`http://127.0.0.1:${port}`, { settings });
  session.on("error", () => {});
  closers.push(() => session.destroy());
  return session;
}

function open(session: http2.ClientHttp2Session, headers: Readonly<Record<string, string>> = {}) {
  const stream = session.request({
    ":method": "POST",
    ":path": `/${METHOD}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  stream.on("error", () => {});
  const seen: Record<string, unknown> = {};
  stream.on("response", (it) => Object.assign(seen, it));
  stream.on("trailers", (it) => Object.assign(seen, it));
  const chunks: Buffer[] = [];
  const read = () => stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const bytes = () => Buffer.concat(chunks);
  /** Read until the stream ends, then end the client's half too, as clients do. */
  const ended = async () => {
    read();
    if (!stream.readableEnded) await once(stream, "end");
    stream.end();
    const status = Number(seen["grpc-status"] ?? -1);
    const details = Buffer.from(String(seen["grpc-status-details-bin"] ?? ""), "base64");
    if (details.length === 0) return { status, reason: null };
    const error = errorFromGrpc({ code: status, details: "", metadata: { get: () => [details] } });
    return { status, reason: describeError(error).reason };
  };
  return { stream, bytes, read, ended };
}

describe("frames on the wire", () => {
  it("should be the same however DATA frames split them", async () => {
    const { server, told } = await start();
    const session = connect(server.port);
    const cut = open(session);
    for (const byte of Buffer.concat([beat(1), beat(300)])) cut.stream.write(Buffer.from([byte]));
    cut.stream.end(Buffer.concat([beat(4), envelope(Buffer.alloc(0)), beat(5)]));
    expect(await cut.ended()).toEqual({ status: 0, reason: null });
    expect(cut.bytes()).toEqual(Buffer.concat([1, 300, 4, 5].map((sequence) => envelope(ack(sequence)))));
    await until("it has ended", () => told.includes("gone"));
    expect(told).toEqual(["beat 1", "beat 300", "beat 4", "other", "beat 5", "half-close", "gone"]);
  });

  it("should wait for a peer that reads nothing, and all arrive once it does", async () => {
    const { server, calls } = await start(400);
    const session = connect(server.port, { initialWindowSize: 1_000 });
    const { stream, bytes, ended } = open(session);
    const call = await until<Call>("the call came", () => calls[0] ?? null);
    // Ping the peer: once it has answered, everything that was sent before has arrived.
    await new Promise((resolve) => session.ping(resolve));
    // Check that frames wait, because the peer's window has room for a thousand bytes only.
    expect(call.unread).toBeGreaterThan(16);
    expect(call.write(ack(8))).toBe(false);
    const allRead = new Promise<void>((resolve) => call.onceAllRead(resolve));
    stream.end();
    expect(await ended()).toEqual({ status: 0, reason: null });
    await allRead;
    expect([call.unread, call.write(ack(9))]).toEqual([0, true]);
    const sent = [...Array.from({ length: 400 }, () => ack(7)), ack(8)];
    expect(bytes()).toEqual(Buffer.concat(sent.map((message) => envelope(message))));
  });

  it("should all arrive before the status if the call times out before its peer reads", async () => {
    const { server, calls, counted } = await start(400);
    const { bytes, ended } = open(connect(server.port, { initialWindowSize: 1_000 }), { "grpc-timeout": "50m" });
    await until("its time is up", async () => (await counted("deadline_exceeded")) === 1);
    const call = calls[0] as Call;
    const waiting = call.unread;
    expect(waiting).toBeGreaterThan(16);
    for (let more = 0; more < 10; more += 1) expect(call.write(ack(8))).toBe(true);
    expect(call.unread).toBe(waiting);
    expect(await ended()).toEqual({ status: Code.DeadlineExceeded, reason: "DEADLINE_EXCEEDED" });
    expect(bytes()).toEqual(Buffer.concat(Array.from({ length: 400 }, () => envelope(ack(7)))));
    expect(call.unread).toBe(0);
  });

  it.each([
    ["resets its stream", (socket: Socket) => socket.write(RESET)],
    ["loses its connection", (socket: Socket) => socket.resetAndDestroy()],
    ["sends GOAWAY for an error", (socket: Socket) => socket.write(GOAWAY)],
  ])("should be cancelled, and not half-closed, by a peer that %s", async (_, act) => {
    const { server, told, counted } = await start();
    const socket = await rawCall(server.port, [HEARTBEAT_HEADERS]);
    socket.write(frame("DATA", { stream: 1, payload: beat(3) }));
    await until("the Beat has arrived", () => told.length === 1);
    act(socket);
    await until("it is gone", () => told.includes("gone"));
    expect(told).toEqual(["beat 3", "gone"]);
    expect([await counted("canceled"), await counted("ok")]).toEqual([1, 0]);
  });

  it("should continue after its peer's GOAWAY without an error, and end cleanly", async () => {
    const { server, told } = await start();
    const session = connect(server.port);
    const { stream, ended, read } = open(session);
    stream.write(beat(1));
    read();
    await once(stream, "data");
    session.goaway();
    stream.end(beat(2));
    expect(await ended()).toEqual({ status: 0, reason: null });
    await until("it has ended", () => told.includes("gone"));
    expect(told).toEqual(["beat 1", "beat 2", "half-close", "gone"]);
  });

  it.each([
    ["that are no message", envelope(Buffer.from([0x0a, 0xff, 0xff])), Code.InvalidArgument, "MALFORMED_MESSAGE"],
    // Send only the header of this message: the rest need not arrive.
    ["too large", TOO_LARGE, Code.ResourceExhausted, "MESSAGE_TOO_LARGE"],
  ])(
    "should end at bytes %s, after the responses to earlier ones, without disturbing other calls",
    async (_, bad, code, reason) => {
      const { server, told, counted, calls } = await start();
      const session = connect(server.port);
      const bystander = open(session);
      const { stream, ended, bytes, read } = open(session);
      stream.write(Buffer.concat([beat(1), beat(2)]));
      read();
      await until("they are answered", () => bytes().length === 2 * envelope(ack(1)).length);
      stream.write(Buffer.concat([bad, beat(3)]));
      expect(await ended()).toEqual({ status: code, reason });
      await until("it is gone", () => told.includes("gone"));
      expect(told).toEqual(["beat 1", "beat 2", "gone"]);
      expect(await counted(code === Code.InvalidArgument ? "invalid_argument" : "resource_exhausted")).toBe(1);
      bystander.stream.end(beat(9));
      expect(await bystander.ended()).toEqual({ status: 0, reason: null });
      expect([calls.length, bystander.bytes()]).toEqual([2, envelope(ack(9))]);
    },
  );

  it.each([
    ["whose last message is truncated", {}, beat(1).subarray(0, 7), Code.InvalidArgument, "MALFORMED_MESSAGE"],
    ["that says its message is compressed", {}, envelope(ack(1), 1), Code.Internal, "COMPRESSION_NOT_NAMED"],
    ["with an invalid timeout", { "grpc-timeout": "1y" }, beat(1), Code.InvalidArgument, "INVALID_REQUEST"],
    ["for whose frames its handler fails", {}, beat(FAILING), Code.Internal, "INTERNAL"],
  ])("should end a call %s", async (_, headers, bytes, code, reason) => {
    const { server, told, lines } = await start();
    const { stream, ended } = open(connect(server.port), headers);
    stream.end(bytes);
    expect(await ended()).toEqual({ status: code, reason });
    if (reason !== "INVALID_REQUEST") await until("it is gone", () => told.includes("gone"));
    expect(told.filter((what) => what !== "gone")).toEqual([]);
    const failed = lines.filter(({ msg }) => msg === "call failed");
    expect(failed).toHaveLength(reason === "INTERNAL" ? 1 : 0);
  });

  it("should only be opened by POST, and treat 25 days as no limit", async () => {
    const { server, calls } = await start();
    const session = connect(server.port);
    const { stream } = open(session, { ":method": "PUT" });
    const [headers] = await once(stream, "response");
    expect([headers[":status"], headers.allow, calls]).toEqual([405, "POST", []]);
    const patient = open(session, { "grpc-timeout": "99999999H" });
    patient.stream.end(beat(1));
    expect(await patient.ended()).toEqual({ status: 0, reason: null });
  });

  it("should arrive after a pause, before the end of their caller's half", async () => {
    const { server, calls, told } = await start();
    const session = connect(server.port);
    const { stream, ended } = open(session);
    stream.end(Buffer.concat([beat(PAUSING), beat(2)]));
    await until("it is paused", () => told.length === 1);
    // The server has read everything that was sent before the ping.
    expect(await new Promise((resolve) => session.ping(resolve))).toBeNull();
    expect(told).toEqual([`beat ${PAUSING}`]);
    calls[0]?.resume();
    expect(await ended()).toEqual({ status: 0, reason: null });
    await until("it is gone", () => told.includes("gone"));
    expect(told).toEqual([`beat ${PAUSING}`, "beat 2", "half-close", "gone"]);
  });

  it("should end a call that is paused, and let its caller send the rest", async () => {
    const { server, calls, told } = await start();
    const { stream, ended } = open(connect(server.port));
    stream.write(beat(PAUSING));
    await until("it is paused", () => told.length === 1);
    calls[0]?.end(refuse("OVERLOADED", "enough"));
    stream.write(Buffer.alloc(200_000));
    const closed = once(stream, "close");
    expect(await ended()).toEqual({ status: Code.ResourceExhausted, reason: "OVERLOADED" });
    await closed;
    expect(told).toEqual([`beat ${PAUSING}`, "gone"]);
  });

  it("should be cancelled, and not half-closed, if the server cuts their connection", async () => {
    const { server, told, counted } = await start();
    const { stream } = open(connect(server.port));
    stream.write(beat(1));
    await until("it is open", () => told.length === 1);
    await server.close();
    await until("it is gone", () => told.includes("gone"));
    expect([told, await counted("canceled"), await counted("ok")]).toEqual([["beat 1", "gone"], 1, 0]);
  });

  it("should not be opened with too much metadata, without disturbing other connections", async () => {
    const { server, calls, told } = await start();
    const bystander = open(connect(server.port));
    bystander.stream.write(beat(1));
    await until("it is open", () => told.length === 1);
    const socket = await rawCall(server.port, [HEARTBEAT_HEADERS, ...Array.from({ length: 20 }, () => LONG_HEADER)]);
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    await until("it is refused", () => socket.destroyed || resets(Buffer.concat(chunks)));
    bystander.stream.end(beat(2));
    expect(await bystander.ended()).toEqual({ status: 0, reason: null });
    expect(calls).toHaveLength(1);
  });

  it("should share their connection with unary calls, and be logged", async () => {
    const { server, lines, counted } = await start();
    const session = connect(server.port);
    const { stream, ended } = open(session);
    stream.write(beat(1));
    const check = open(session, { ":path": "/grpc.health.v1.Health/Check" });
    check.stream.end(envelope(Buffer.alloc(0)));
    expect(await check.ended()).toEqual({ status: 0, reason: null });
    expect(check.bytes()).toEqual(envelope(Buffer.from([8, 1])));
    stream.end();
    expect(await ended()).toEqual({ status: 0, reason: null });
    await until("both lines are written", () => lines.filter(({ method }) => method === METHOD).length === 2);
    expect(lines.filter(({ method }) => method === METHOD)).toMatchObject([
      { msg: "stream opened", peer: expect.stringMatching(/^127\.0\.0\.1:\d+$/) },
      { msg: "stream closed", code: "ok", duration_ms: expect.any(Number) },
    ]);
    expect(await counted("ok")).toBe(1);
  });

  it("should end with their status while the server closes, or be cut after the grace period", async () => {
    const { server, calls, told } = await start();
    const session = connect(server.port);
    const [ending, staying] = [open(session), open(session)];
    for (const { stream } of [ending, staying]) stream.write(beat(1));
    await until("both are open", () => told.length === 2);
    const goaway = once(session, "goaway");
    const closed = server.close();
    await goaway;
    calls[0]?.end(refuse("OVERLOADED", "going away"));
    expect(await ending.ended()).toEqual({ status: Code.ResourceExhausted, reason: "OVERLOADED" });
    await closed;
    await until("both are gone", () => told.filter((what) => what === "gone").length === 2);
    expect(told).not.toContain("half-close");
  });
});
