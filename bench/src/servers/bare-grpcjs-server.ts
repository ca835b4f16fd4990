import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import {
  HealthService,
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  type CreateChallengeResponse,
  CreateChallengeResponseSchema,
  type RegisterNodeRequest,
  type RegisterNodeResponse,
  RegisterNodeResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { bareGrpcMethod } from "@rollcall/testkit/grpc-method";

type Stream = grpc.ServerDuplexStream<HeartbeatRequest, HeartbeatResponse>;

/**
 * Creates a server that serves as the lower bound for the services. It uses the same transport, and decodes and
 * responds with the same bytes, but does nothing else: it checks no signature and keeps no state.
 */
export function createBareServer({ told = [] }: BareServerOptions = {}): grpc.Server {
  const server = new grpc.Server();
  server.addService(HEALTH_SERVICE, { heartbeat: (stream: Stream) => heartbeat(stream, told) });
  server.addService(REGISTRY_SERVICE, { createChallenge, registerNode });
  return server;
}

/** Additional behaviour of a bare server. */
interface BareServerOptions {
  /** Frames to send immediately after the Welcome. */
  readonly told?: readonly NonNullable<MessageInitShape<typeof HeartbeatResponseSchema>["frame"]>[];
}

const HEALTH_SERVICE: grpc.ServiceDefinition = { heartbeat: bareGrpcMethod(HealthService.method.heartbeat) };
const REGISTRY_SERVICE: grpc.ServiceDefinition = {
  createChallenge: bareGrpcMethod(RegistryService.method.createChallenge),
  registerNode: bareGrpcMethod(RegistryService.method.registerNode),
};

type Answer<Response> = (error: null, response: Response) => void;

function createChallenge(_call: unknown, answer: Answer<CreateChallengeResponse>): void {
  const expireTime = timestampFromMs(Date.now() + 60_000);
  answer(null, create(CreateChallengeResponseSchema, { nonce: new Uint8Array(32), expireTime, clusterId: "bare" }));
}

/** Responds with about as many bytes as the registry by returning the node's own description. */
function registerNode(
  { request }: { readonly request: RegisterNodeRequest },
  answer: Answer<RegisterNodeResponse>,
): void {
  const { nodeId: id, info } = request;
  const node = { id, ...(info !== undefined && { info }) };
  const rest = { created: true, message: "node registered", healthEndpoints: [":7701"], clusterId: "bare" };
  answer(null, create(RegisterNodeResponseSchema, { node, ...rest }));
}

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
