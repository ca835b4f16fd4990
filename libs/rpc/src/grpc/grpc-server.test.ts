import { once } from "node:events";
import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type ClientDuplexStream, credentials, Client as GrpcClient } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  Health as GrpcHealth,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Serving,
} from "@rollcall/api/grpc/health/v1/health_pb";
import {
  HealthService,
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { describeError, refuse } from "@rollcall/errors";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { bareGrpcMethod, type Encodable } from "@rollcall/testkit/grpc-method";
import { captureLog } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { healthRoute } from "../../test/health-route.ts";
import { failureOf } from "../../test/rpc-fixture.ts";
import { ServingStatus } from "../builtins/serving-status.ts";
import { MESSAGE_LIMIT_BYTES, type RunningServer } from "../server-options.ts";
import type { FrameHandler } from "./frame-call.ts";
import { errorFromGrpc } from "./grpc-error.ts";
import { createGrpcServer, type GrpcServerOptions } from "./grpc-server.ts";

type Heartbeat = FrameHandler<HeartbeatRequest>;
const METHOD = "rollcall.health.v1.HealthService/Heartbeat";
const ack = create(HeartbeatResponseSchema, { frame: { case: "ack", value: { sequence: 7 } } });
const encodedAck = Buffer.from(toBinary(HeartbeatResponseSchema, ack));
const beat = create(HeartbeatRequestSchema, { frame: { case: "beat", value: { sequence: 7 } } });

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(heartbeat: Heartbeat, options: Partial<GrpcServerOptions> = {}) {
  const { log, lines } = captureLog();
  const metrics = createMetrics({ defaults: false });
  const server = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: [healthRoute({ heartbeat })],
    log,
    metrics,
    closeGraceMs: 200,
    ...options,
  });
  closers.push(() => server.close());
  return { server, lines, metrics, client: clientOf(server) };
}

function clientOf({ port }: RunningServer): GrpcClient {
  const client = new GrpcClient(`127.0.0.1:${port}`, credentials.createInsecure(), {
    "grpc.max_send_message_length": -1,
  });
  closers.push(() => client.close());
  return client;
}

function open(client: GrpcClient): ClientDuplexStream<Encodable, HeartbeatResponse> {
  const { path, requestSerialize, responseDeserialize } = bareGrpcMethod(HealthService.method.heartbeat);
  return client.makeBidiStreamRequest(
    path,
    requestSerialize,
    responseDeserialize as (bytes: Buffer) => HeartbeatResponse,
  );
}

async function errorOf(call: ClientDuplexStream<Encodable, HeartbeatResponse>) {
  call.resume();
  const [error] = await once(call, "error");
  return describeError(errorFromGrpc(error));
}

const answerEach: Heartbeat = {
  open: (call) => ({
    onFrame: ({ frame }) => {
      if (frame.case === "beat") call.write(encodedAck);
    },
    onHalfClose: () => call.end(),
    onGone: () => {},
  }),
};

describe("createGrpcServer()", () => {
  it.each([
    ["an invalid timeout", { "grpc-timeout": "soon" }, [], Code.InvalidArgument, "INVALID_REQUEST"],
    ["no message", {}, [], Code.Unimplemented, "ONE_MESSAGE_REQUIRED"],
    ["two messages", {}, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Code.Unimplemented, "ONE_MESSAGE_REQUIRED"],
    ["a compressed message without an encoding", {}, [1, 0, 0, 0, 0], Code.Internal, "COMPRESSION_NOT_NAMED"],
    ["an unsupported encoding", { "grpc-encoding": "foo" }, [], Code.Unimplemented, "COMPRESSION_NOT_SUPPORTED"],
  ])("should report %s as the caller's mistake", async (what, headers, bytes, code, reason) => {
    const { server } = await start(answerEach);
    const session = connect(`http://127.0.0.1:${server.port}`);
    closers.push(() => session.destroy());
    const stream = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    // Leave the request open if the timeout is invalid, because such a call is refused even if the request does not
    // end.
    if (!what.includes("timeout")) stream.end(Buffer.from(bytes));
    const [answer] = await once(stream, "response");
    const details = Buffer.from(String(answer["grpc-status-details-bin"]), "base64").toString();
    expect([answer["grpc-status"], details]).toEqual([String(code), expect.stringContaining(reason)]);
  });

  it.each([
    ["GET", "application/grpc", 405],
    ["POST", "application/json", 415],
    ["POST", undefined, 415],
  ])("should answer a request that is no gRPC call with its HTTP status: %s, %s", async (method, type, status) => {
    const { server, lines } = await start(answerEach);
    const session = connect(`http://127.0.0.1:${server.port}`);
    closers.push(() => session.destroy());
    const headers = {
      ":method": method,
      ":path": `/${METHOD}`,
      ...(type === undefined ? {} : { "content-type": type }),
    };
    // Leave the request open, because its answer must not depend on the rest.
    const stream = session.request(headers, { endStream: false });
    const closed = once(stream, "close");
    const [answer] = await once(stream, "response");
    expect(answer[":status"]).toBe(status);
    await closed;
    expect(lines).toEqual([]);
  });

  it("should refuse an unknown method with a reason, without the caller's text in its metrics", async () => {
    const { client, metrics, lines } = await start(answerEach);
    const echo = (bytes: Buffer) => bytes;
    for (const path of ["/rollcall.health.v1.HealthService/Nope", "/a.B/C", "/", "/__proto__"]) {
      const call = client.makeBidiStreamRequest(path, echo, echo);
      call.write(Buffer.from("anything"));
      expect(await errorOf(call as never)).toMatchObject({
        code: Code.Unimplemented,
        reason: "UNKNOWN_METHOD",
        metadata: { path },
      });
    }
    expect(await renderMetrics(metrics)).toContain('method="unknown"');
    expect(await renderMetrics(metrics)).not.toContain("Nope");
    expect(lines.map(({ method }) => method)).not.toContain("a.B/C");
  });

  it("should carry the messages of a handler, and log the stream", async () => {
    const { client, lines } = await start({
      open: (call) => {
        call.write(encodedAck);
        call.write(encodedAck);
        return { onFrame: () => {}, onHalfClose: () => call.end(), onGone: () => {} };
      },
    });
    const call = open(client);
    const received: HeartbeatResponse[] = [];
    call.on("data", (response: HeartbeatResponse) => received.push(response));
    call.end();
    await once(call, "end");
    expect(received).toEqual([ack, ack]);
    await until("both lines are written", () => lines.length === 2);
    expect(lines).toMatchObject([
      { msg: "stream opened", method: METHOD, peer: expect.stringContaining("127.0.0.1") },
      { msg: "stream closed", method: METHOD, code: "ok", duration_ms: expect.any(Number) },
    ]);
  });

  it("should be compatible with Connect's client", async () => {
    const { server } = await start(answerEach);
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const sessionManager = new Http2SessionManager(baseUrl);
    closers.push(() => sessionManager.abort());
    const client = createClient(HealthService, createGrpcTransport({ baseUrl, sessionManager }));
    const received: HeartbeatResponse[] = [];
    for await (const response of client.heartbeat(twice(beat))) received.push(response);
    expect(received).toEqual([ack, ack]);
  });

  it("should send reason, metadata and retry time of an error to either client", async () => {
    const refusal = refuse("OVERLOADED", "too many hellos: try again", {
      metadata: { limit: "10" },
      retryAfterMs: 1_234,
    });
    const { client, server, lines } = await start({
      open: () => {
        throw refusal;
      },
    });
    const expected = {
      code: 8,
      message: "too many hellos: try again",
      reason: "OVERLOADED",
      metadata: { limit: "10" },
      retryAfterMs: 1_234,
      violations: [],
    };
    expect(await errorOf(open(client))).toEqual(expected);
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const sessionManager = new Http2SessionManager(baseUrl);
    closers.push(() => sessionManager.abort());
    const connect = createClient(HealthService, createGrpcTransport({ baseUrl, sessionManager }));
    const call = connect.heartbeat(twice(beat))[Symbol.asyncIterator]();
    expect(describeError(await failureOf(call.next()))).toEqual(expected);
    expect(lines[1]).toMatchObject({ code: "resource_exhausted", reason: "OVERLOADED" });
  });

  it("should end only the stream that receives malformed or oversized messages", async () => {
    const { client, metrics } = await start(answerEach);
    const bystander = open(client);
    const garbage = open(client);
    garbage.write(Buffer.from([0x0a, 0xff, 0xff]));
    expect(await errorOf(garbage)).toMatchObject({ code: 3, reason: "MALFORMED_MESSAGE" });
    const large = open(client);
    large.write(Buffer.alloc(MESSAGE_LIMIT_BYTES + 1));
    expect(await errorOf(large)).toMatchObject({ code: 8, reason: "MESSAGE_TOO_LARGE" });
    bystander.write(beat);
    expect(await once(bystander, "data")).toEqual([ack]);
    bystander.end();
    await once(bystander.resume(), "end");
    const text = await renderMetrics(metrics);
    for (const code of ["ok", "invalid_argument", "resource_exhausted"]) {
      expect(text).toContain(`rollcall_rpc_duration_seconds_count{method="${METHOD}",code="${code}"} 1`);
    }
  });

  it("should distinguish a caller that cancels from one that ends, and write no lines if configured so", async () => {
    // Keep the call open when the caller ends its half, because a client on Node ends its half before it cancels.
    const keeping: Heartbeat = {
      open: (call) => ({ onFrame: () => call.write(encodedAck), onHalfClose: () => {}, onGone: () => {} }),
    };
    const { client, lines, metrics } = await start(keeping, { logCalls: false });
    const call = open(client);
    call.write(beat);
    await once(call, "data");
    call.cancel();
    await errorOf(call);
    const cancelled = `rollcall_rpc_duration_seconds_count{method="${METHOD}",code="canceled"} 1`;
    await until("it is counted", async () => (await renderMetrics(metrics)).includes(cancelled));
    expect(lines).toEqual([]);
  });

  it("should close immediately without calls in progress, and cut remaining calls after the grace period", async () => {
    const idle = await start(answerEach, { closeGraceMs: 60_000 });
    await idle.server.close();
    const busy = await start(answerEach);
    const call = open(busy.client);
    call.write(beat);
    await once(call, "data");
    const failed = errorOf(call);
    await busy.server.close();
    await failed;
    const { port } = (await start(answerEach)).server;
    await expect(start(answerEach, { port })).rejects.toThrow("EADDRINUSE");
  });
});

describe("grpc.health.v1", () => {
  it("should answer for known services, refuse unknown ones, and report changes", async () => {
    const serving = new ServingStatus();
    const { server } = await start(answerEach, { serving });
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const sessionManager = new Http2SessionManager(baseUrl);
    closers.push(() => sessionManager.abort());
    const client = createClient(GrpcHealth, createGrpcTransport({ baseUrl, sessionManager }));
    const service = HealthService.typeName;
    expect((await client.check({ service })).status).toBe(Serving.SERVING);
    expect((await failureOf(client.check({ service: "nobody" }))).code).toBe(5);
    const serves = { status: Serving.SERVING };
    expect((await client.list({})).statuses).toMatchObject({ "": serves, [service]: serves });
    const watch = client.watch(create(HealthCheckRequestSchema, { service }))[Symbol.asyncIterator]();
    expect((await watch.next()).value?.status).toBe(Serving.SERVING);
    serving.set(service, "NOT_SERVING");
    expect((await watch.next()).value?.status).toBe(Serving.NOT_SERVING);
    serving.drain();
    expect((await client.check({ service: "" })).status).toBe(Serving.NOT_SERVING);
  });
});

async function* twice<T>(value: T) {
  yield value;
  yield value;
}
