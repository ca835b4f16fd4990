import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js";
import {
  HealthService,
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  CreateChallengeResponseSchema,
  type RegisterNodeRequest,
  RegisterNodeResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { proofText } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { verifyProof } from "@rollcall/identity";
import { bareGrpcMethod } from "@rollcall/testkit/grpc-method";
import { toGrpcStatus } from "@rollcall/testkit/grpc-status";
import { HEARTBEAT_METHOD, toDuration } from "../stream/hello.ts";

/** The server's side of a stream over the wire. */
export type WireStream = ServerDuplexStream<HeartbeatRequest, HeartbeatResponse>;

/**
 * A control plane on grpc-js: registry and health service on one port, with real proofs and real frames.
 */
export class FakeGrpcServer {
  readonly registrations: RegisterNodeRequest[] = [];
  readonly streams: WireStream[] = [];
  readonly frames: HeartbeatRequest["frame"][] = [];
  heartbeatMs = 20;
  /** While this is set, every registration fails with it. */
  refusal: Error | undefined;
  /** The endpoints of health replicas that registrations return. Default: the port of this server. */
  healthEndpoints: readonly string[] | undefined;
  port = 0;
  readonly #server = new Server();
  readonly #keys = new Map<string, Uint8Array>();

  /** Listen on a free port, or on the given port of an earlier server. */
  async listen(port = 0): Promise<void> {
    this.#server.addService(
      {
        createChallenge: bareGrpcMethod(RegistryService.method.createChallenge),
        registerNode: bareGrpcMethod(RegistryService.method.registerNode),
        heartbeat: bareGrpcMethod(HealthService.method.heartbeat),
      },
      {
        createChallenge: (_: ServerUnaryCall<unknown, unknown>, done: sendUnaryData<unknown>) =>
          done(null, create(CreateChallengeResponseSchema, { nonce: NONCE, clusterId: CLUSTER })),
        registerNode: (call: ServerUnaryCall<RegisterNodeRequest, unknown>, done: sendUnaryData<unknown>) =>
          this.#register(call.request, done),
        heartbeat: (stream: WireStream) => this.#serve(stream),
      },
    );
    this.port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
  }

  /** Copy the registered nodes of another server. */
  inherit(other: FakeGrpcServer): void {
    for (const [nodeId, key] of other.#keys) this.#keys.set(nodeId, key);
  }

  /** Behave as if no node had ever registered. */
  forgetAll(): void {
    this.#keys.clear();
  }

  /** The kinds of frames received so far. */
  kinds(): readonly (string | undefined)[] {
    return this.frames.map((frame) => frame.case);
  }

  /** Break every connection. */
  destroy(): void {
    this.#server.forceShutdown();
  }

  #register(request: RegisterNodeRequest, done: sendUnaryData<unknown>): void {
    this.registrations.push(request);
    if (this.refusal !== undefined) {
      done(toGrpcStatus(this.refusal));
      return;
    }
    const { nodeId, publicKey, proof } = request;
    const method = `/${RegistryService.typeName}/${RegistryService.method.registerNode.name}`;
    if (!isProven(publicKey, { method, nodeId, signature: proof?.signature })) {
      done(toGrpcStatus(refuse("PROOF_INVALID", "no signature of this call")));
      return;
    }
    this.#keys.set(nodeId, publicKey);
    done(
      null,
      create(RegisterNodeResponseSchema, {
        node: { id: nodeId, membership: { state: MembershipState.APPROVED } },
        clusterId: CLUSTER,
        healthEndpoints: [...(this.healthEndpoints ?? [`:${this.port}`])],
      }),
    );
  }

  #serve(stream: WireStream): void {
    this.streams.push(stream);
    send(stream, { case: "challenge", value: { nonce: NONCE, clusterId: CLUSTER } });
    stream.on("data", ({ frame }: HeartbeatRequest) => {
      this.frames.push(frame);
      if (frame.case === "hello") this.#welcome(stream, frame.value);
      if (frame.case === "beat") {
        send(stream, { case: "ack", value: { sequence: frame.value.sequence } });
      }
    });
    stream.on("end", () => stream.end());
    stream.on("error", () => {
      // Ignore errors, because peers disappear in these tests.
    });
  }

  #welcome(stream: WireStream, { nodeId, signature }: { nodeId: string; signature: Uint8Array }) {
    const key = this.#keys.get(nodeId);
    if (key === undefined) {
      stream.emit("error", toGrpcStatus(refuse("NODE_NOT_REGISTERED", "register first")));
    } else if (!isProven(key, { method: HEARTBEAT_METHOD, nodeId, signature })) {
      stream.emit("error", toGrpcStatus(refuse("PROOF_INVALID", "no signature of this stream")));
    } else {
      send(stream, {
        case: "welcome",
        value: {
          sessionEpoch: BigInt(this.streams.length),
          membership: { state: MembershipState.APPROVED },
          settings: {
            heartbeatInterval: toDuration(this.heartbeatMs),
            unhealthyAfter: toDuration(60_000),
          },
          clusterId: CLUSTER,
          nodeInfoWanted: true,
        },
      });
    }
  }
}

const NONCE = new Uint8Array(16).fill(7);
const CLUSTER = "cluster-wire";

/** Send one frame. */
export function send(
  stream: WireStream,
  frame: NonNullable<MessageInitShape<typeof HeartbeatResponseSchema>["frame"]>,
): void {
  stream.write(create(HeartbeatResponseSchema, { frame }));
}

function isProven(
  key: Uint8Array,
  proof: { method: string; nodeId: string; signature: Uint8Array | undefined },
): boolean {
  const { method, nodeId, signature = new Uint8Array() } = proof;
  const text = proofText({ method, clusterId: CLUSTER, nodeId, nonce: NONCE });
  return verifyProof(key, text, signature);
}
