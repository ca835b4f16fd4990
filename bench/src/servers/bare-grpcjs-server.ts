import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import {
  type HeartbeatRequest,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";

type Stream = grpc.ServerDuplexStream<HeartbeatRequest, HeartbeatResponse>;

/**
 * The bound that the health service is measured against: the same transport and the same bytes, decoded and
 * acknowledged, and nothing else. No signature is checked, nothing is remembered.
 */
export function createBareServer({ told = [] }: BareServerOptions = {}): grpc.Server {
  const server = new grpc.Server();
  server.addService(SERVICE, { heartbeat: (stream: Stream) => heartbeat(stream, told) });
  return server;
}

/** What a bare server does besides. */
interface BareServerOptions {
  /** Frames that follow the Welcome at once. */
  readonly told?: readonly NonNullable<MessageInitShape<typeof HeartbeatResponseSchema>["frame"]>[];
}

const SERVICE: grpc.ServiceDefinition = {
  heartbeat: {
    path: "/rollcall.health.v1.HealthService/Heartbeat",
    requestStream: true,
    responseStream: true,
    requestSerialize: (message: HeartbeatRequest) => Buffer.from(toBinary(HeartbeatRequestSchema, message)),
    requestDeserialize: (bytes: Buffer) => fromBinary(HeartbeatRequestSchema, bytes),
    responseSerialize: (message: HeartbeatResponse) => Buffer.from(toBinary(HeartbeatResponseSchema, message)),
    responseDeserialize: (bytes: Buffer) => fromBinary(HeartbeatResponseSchema, bytes),
  },
};

function heartbeat(stream: Stream, told: NonNullable<BareServerOptions["told"]>): void {
  stream.on("data", ({ frame }: HeartbeatRequest) => {
    if (frame.case === "beat") {
      const ack = { sequence: frame.value.sequence };
      stream.write(create(HeartbeatResponseSchema, { frame: { case: "ack", value: ack } }));
    } else if (frame.case === "hello") {
      const welcome = { sessionEpoch: 1n, clusterId: "bare" };
      stream.write(create(HeartbeatResponseSchema, { frame: { case: "welcome", value: welcome } }));
      for (const frame of told) stream.write(create(HeartbeatResponseSchema, { frame }));
    }
  });
  stream.on("end", () => stream.end());
  stream.on("error", () => {});
  const challenge = { nonce: new Uint8Array(32), clusterId: "bare" };
  stream.write(create(HeartbeatResponseSchema, { frame: { case: "challenge", value: challenge } }));
}
