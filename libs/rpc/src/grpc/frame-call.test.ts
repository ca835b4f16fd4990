import { once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { type ClientDuplexStream, credentials, Client as GrpcClient, Metadata } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  HealthService,
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { describeError, refuse } from "@rollcall/errors";
import { createMetrics, silentLogger } from "@rollcall/process";
import { bareGrpcMethod, type Encodable } from "@rollcall/testkit/grpc-method";
import { until } from "@rollcall/testkit/time";
import { healthRoute } from "../../test/health-route.ts";
import type { FrameHandler } from "./frame-call.ts";
import { errorFromGrpc } from "./grpc-error.ts";
import { createGrpcServer } from "./grpc-server.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function callOf(heartbeat: FrameHandler<HeartbeatRequest>) {
  const server = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: [healthRoute({ heartbeat })],
    log: silentLogger,
    metrics: createMetrics({ defaults: false }),
    closeGraceMs: 100,
  });
  closers.push(() => server.close());
  const client = new GrpcClient(`127.0.0.1:${server.port}`, credentials.createInsecure());
  closers.push(() => client.close());
  const { path, requestSerialize, responseDeserialize } = bareGrpcMethod(HealthService.method.heartbeat);
  const decode = responseDeserialize as (bytes: Buffer) => HeartbeatResponse;
  const metadata = new Metadata();
  metadata.set("x-asked", "asked");
  const call: ClientDuplexStream<Encodable, HeartbeatResponse> = client.makeBidiStreamRequest(
    path,
    requestSerialize,
    decode,
    metadata,
  );
  call.on("error", () => {});
  return call;
}

function beat(sequence: number): HeartbeatRequest {
  return create(HeartbeatRequestSchema, { frame: { case: "beat", value: { sequence } } });
}

function ack(sequence: number): Buffer {
  const value = { sequence };
  return Buffer.from(
    toBinary(HeartbeatResponseSchema, create(HeartbeatResponseSchema, { frame: { case: "ack", value } })),
  );
}

/** A handler that acknowledges each Beat, and ends the call when the peer ends its half. */
const acknowledging: FrameHandler<HeartbeatRequest> = {
  open: (call) => ({
    onFrame: ({ frame }) => {
      if (frame.case === "beat") call.write(ack(frame.value.sequence));
    },
    onHalfClose: () => call.end(),
    onGone: () => {},
  }),
};

describe("FrameCall", () => {
  it("should pass each frame to its reader in order, and end after the written frames", async () => {
    const call = await callOf(acknowledging);
    const sequences = Array.from({ length: 500 }, (_, index) => index + 1);
    for (const sequence of sequences) call.write(beat(sequence));
    call.end();
    const got: (number | undefined)[] = [];
    call.on("data", ({ frame }: HeartbeatResponse) => {
      got.push(frame.case === "ack" ? frame.value.sequence : undefined);
    });
    const [status] = await once(call, "status");
    expect([got, status.code]).toEqual([sequences, 0]);
  });

  it("should end with the error of a handler that refuses the call, or of a reader that ends it", async () => {
    const throwing: FrameHandler<HeartbeatRequest> = {
      open: () => {
        throw refuse("NODE_NOT_FOUND", "no such node");
      },
    };
    const ending: FrameHandler<HeartbeatRequest> = {
      open: (call) => ({
        onFrame: () => {
          call.end(refuse("NODE_NOT_FOUND", "no such node"));
          call.end();
          call.write(ack(1));
        },
        onHalfClose: () => {},
        onGone: () => {},
      }),
    };
    for (const handler of [throwing, ending]) {
      const call = await callOf(handler);
      const failed = once(call, "error");
      call.write(beat(1));
      call.resume();
      const [error] = await failed;
      expect(describeError(errorFromGrpc(error)).reason).toBe("NODE_NOT_FOUND");
    }
  });

  it("should carry metadata: of the request, before the first frame, and with the status", async () => {
    const call = await callOf({
      open: (it, headers) => {
        it.sendMetadata({ "x-first": String(headers["x-asked"]) });
        it.sendMetadata({ "x-first": "too late" });
        return { onFrame: () => {}, onHalfClose: () => it.end(undefined, { "x-last": "2" }), onGone: () => {} };
      },
    });
    const header = once(call, "metadata");
    const ended = once(call, "status");
    expect((await header)[0].getMap()).toMatchObject({ "x-first": "asked" });
    call.end();
    call.resume();
    expect((await ended)[0]).toMatchObject({ code: 0, metadata: expect.objectContaining({}) });
    expect((await ended)[0].metadata.getMap()).toMatchObject({ "x-last": "2" });
  });

  it("should pass no frame while it is paused, and all others, in order, after that", async () => {
    const got: (number | undefined)[] = [];
    const call = await callOf({
      open: (it) => ({
        onFrame: ({ frame }) => {
          got.push(frame.case === "beat" ? frame.value.sequence : undefined);
          it.pause();
          it.write(ack(0));
          // Frames of the same packet must wait too.
          it.onceAllRead(() => {
            got.push(0);
            it.resume();
          });
        },
        onHalfClose: () => it.end(),
        onGone: () => {},
      }),
    });
    for (const sequence of [1, 2, 3]) call.write(beat(sequence));
    call.end();
    const [status] = await once(call.resume(), "status");
    expect([got, status.code]).toEqual([[1, 0, 2, 0, 3, 0], 0]);
  });

  it("should notify its reader once when the peer has disconnected", async () => {
    const events: string[] = [];
    const call = await callOf({
      open: () => ({
        onFrame: () => events.push("frame"),
        onHalfClose: () => events.push("half-close"),
        onGone: () => events.push("gone"),
      }),
    });
    call.write(beat(1));
    await until("the frame has arrived", () => events.length === 1);
    call.cancel();
    await until("it is gone", () => events.includes("gone"));
    // Node.js may first report the end of the input as a "half-close". Ignore that.
    expect(events.filter((event) => event !== "half-close")).toEqual(["frame", "gone"]);
  });
});
