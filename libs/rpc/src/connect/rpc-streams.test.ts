import { once } from "node:events";
import { connect } from "node:http2";
import net from "node:net";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { credentials, Client as GrpcClient } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  HealthService,
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { describeError } from "@rollcall/errors";
import { renderMetrics } from "@rollcall/process";
import { bareGrpcMethod } from "@rollcall/testkit/grpc-method";
import { until } from "@rollcall/testkit/time";
import { failureOf, RpcFixture } from "../../test/rpc-fixture.ts";
import { Outbox } from "../calls/outbox.ts";

const HEARTBEAT = "rollcall.health.v1.HealthService/Heartbeat";
let fixture: RpcFixture;
afterEach(async () => await fixture.stop());

const ack = () => create(HeartbeatResponseSchema, { frame: { case: "ack", value: { sequence: 1 } } });
const beat = () => create(HeartbeatRequestSchema, { frame: { case: "goodbye", value: {} } });

/** A well-behaved long stream: it answers each request, and ends when it is aborted. */
async function* wellShaped(
  requests: AsyncIterable<HeartbeatRequest>,
  context: HandlerContext,
): AsyncGenerator<HeartbeatResponse> {
  const outbox = new Outbox<HeartbeatResponse>(8);
  const receive = async () => {
    for await (const _ of requests) outbox.push(ack());
  };
  const inbound = receive().finally(() => outbox.close());
  // Avoid an unhandled rejection until the last line of this stream rethrows the error.
  inbound.catch(() => {});
  context.signal.addEventListener("abort", () => outbox.close(), { once: true });
  yield* outbox;
  context.signal.throwIfAborted();
  await inbound;
}

/** A stream that looks right, but hangs at shutdown because it waits for its caller. */
async function* parked(requests: AsyncIterable<HeartbeatRequest>): AsyncGenerator<HeartbeatResponse> {
  for await (const _ of requests) yield ack();
}

/** Create the requests of a caller that sends one frame and keeps its stream open until the test closes it. */
function holdingCaller() {
  const hold = new Outbox<HeartbeatRequest>(8);
  hold.push(beat());
  return hold;
}

async function closedLine() {
  await until("the end is logged", () => fixture.lines.some((line) => line.msg === "stream closed"));
  return fixture.lines.filter((line) => String(line.msg).startsWith("stream"));
}

describe.each([
  ["well shaped", wellShaped],
  ["parked", parked],
] as const)("a %s stream", (_, heartbeat) => {
  it("should end normally when its caller closes it", async () => {
    fixture = await RpcFixture.start({ health: { heartbeat } });
    const requests = holdingCaller();
    const responses = fixture.health().heartbeat(requests)[Symbol.asyncIterator]();
    expect((await responses.next()).value?.frame.case).toBe("ack");
    requests.close();
    expect((await responses.next()).done).toBe(true);
    expect(await closedLine()).toMatchObject([
      { msg: "stream opened", method: HEARTBEAT },
      { msg: "stream closed", method: HEARTBEAT, code: "ok", caller: "anonymous" },
    ]);
  });

  it("should end when its caller aborts it", async () => {
    let handlerSignal: AbortSignal | undefined;
    fixture = await RpcFixture.start({
      health: {
        heartbeat: (requests, context) => {
          handlerSignal = context.signal;
          return heartbeat(requests, context);
        },
      },
    });
    // Use grpc-js, because connect-node properly ends its half before it resets the stream.
    const client = new GrpcClient(`127.0.0.1:${fixture.server.port}`, credentials.createInsecure());
    const { path, requestSerialize, responseDeserialize } = bareGrpcMethod(HealthService.method.heartbeat);
    const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
    const failed = once(call, "error");
    call.write(beat());
    await once(call, "data");
    call.cancel();
    await failed;
    client.close();
    expect((await closedLine())[1]).toMatchObject({ code: "canceled", reason: "CANCELLED" });
    expect(handlerSignal?.aborted).toBe(true);
    expect(await renderMetrics(fixture.metrics)).toContain(`rollcall_rpc_streams_open{method="${HEARTBEAT}"} 0`);
  });

  it("should end when its connection breaks", async () => {
    fixture = await RpcFixture.start({ health: { heartbeat } });
    const socket = net.connect(fixture.server.port, "127.0.0.1");
    const session = connect(fixture.url, { createConnection: () => socket });
    session.on("error", () => {});
    const stream = session.request({
      ":method": "POST",
      ":path": `/${HEARTBEAT}`,
      "content-type": "application/grpc+proto",
      te: "trailers",
    });
    stream.on("error", () => {});
    stream.write(Buffer.from([0, 0, 0, 0, 2, 0x22, 0]));
    await new Promise((resolve) => stream.once("data", resolve));
    socket.destroy();
    expect((await closedLine())[1]).toMatchObject({ code: "canceled", reason: "CANCELLED" });
  });

  it("should end when the server shuts down, with the reason and retry time", async () => {
    // Set a long grace period. If the server waited for its end, the test would time out.
    fixture = await RpcFixture.start({ health: { heartbeat }, closeGraceMs: 3_600_000 });
    const responses = fixture.health().heartbeat(holdingCaller())[Symbol.asyncIterator]();
    await responses.next();
    const closed = fixture.server.close();
    const error = describeError(await failureOf(responses.next()));
    expect(error).toMatchObject({ code: 14, reason: "SERVER_SHUTTING_DOWN", retryAfterMs: 250 });
    await closed;
    expect((await closedLine())[1]).toMatchObject({ level: "info", code: "unavailable" });
  });
});

describe("server close", () => {
  it("should let unary calls in progress finish, and accept no new connection", async () => {
    let release: (() => void) | undefined;
    fixture = await RpcFixture.start({
      registry: {
        getNode: async ({ node }) => {
          await new Promise<void>((resolve) => {
            release = resolve;
          });
          return { node: { id: node } };
        },
      },
    });
    const call = fixture.registry().getNode({ node: "n" });
    await until("the call is in progress", () => release !== undefined);
    const closed = fixture.server.close();
    await until("connections are refused", async () => await refusesConnections(fixture.url));
    release?.();
    expect((await call).node?.id).toBe("n");
    await closed;
    expect(fixture.lines).toMatchObject([{ msg: "call finished", code: "ok" }]);
  });

  it("should cut unary calls that exceed the grace period, with the reason", async () => {
    let underWay = 0;
    fixture = await RpcFixture.start({
      closeGraceMs: 100,
      registry: {
        getNode: () => {
          underWay += 1;
          return new Promise(() => {});
        },
      },
    });
    const overGrpc = failureOf(fixture.registry("grpc").getNode({ node: "n" }));
    const overHttp1 = failureOf(fixture.registry("connect-http1").getNode({ node: "n" }));
    await until("both calls are in progress", () => underWay === 2);
    await fixture.server.close();
    expect(describeError(await overGrpc).reason).toBe("SERVER_SHUTTING_DOWN");
    expect(describeError(await overHttp1).reason).toBe("SERVER_SHUTTING_DOWN");
    expect(fixture.lines.some((line) => line.msg === "calls in progress were cut")).toBe(true);
  });

  it("should not wait for idle connections of either protocol", async () => {
    fixture = await RpcFixture.start({ closeGraceMs: 3_600_000 });
    await fixture.registry("grpc").getNode({ node: "n" });
    await fixture.registry("connect-http1").getNode({ node: "n" });
    await fixture.server.close();
    await fixture.server.close();
  });
});

async function refusesConnections(url: string): Promise<boolean> {
  return await fetch(url, { headers: { connection: "close" } }).then(
    () => false,
    () => true,
  );
}
