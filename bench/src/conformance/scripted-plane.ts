import { createHash } from "node:crypto";
import { create, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js";
import {
  GoAwayAction,
  HealthService,
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
  type Hello,
  ServeLogsResponseSchema,
  SettingsSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  CreateChallengeResponseSchema,
  type RegisterNodeRequest,
  RegisterNodeResponseSchema,
  RegistryService,
  type RotateNodeKeyRequest,
  RotateNodeKeyResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { acceptKey, decideRotation } from "@rollcall/domain";
import { keyFingerprint } from "@rollcall/identity";
import { bareGrpcMethod } from "@rollcall/testkit/grpc-method";
import { toGrpcStatus } from "@rollcall/testkit/grpc-status";
import { nodeInfoDigest } from "@rollcall/wire";
import { CLUSTER_ID, RecordedKeys } from "./recorded-keys.ts";
import { StreamRules } from "./rules.ts";
import { type EventKind, type Manner, type PlaneEvent, type Refusal, type Scenario, USUAL } from "./scenario.ts";
import { base64, errorOf, filled, msOf, responseOf, specBytes, told } from "./wire.ts";

type Stream = ServerDuplexStream<HeartbeatRequest, HeartbeatResponse | Buffer>;

interface OpenStream {
  readonly call: Stream;
  readonly rules: StreamRules;
  readonly nonce: Uint8Array;
  isOpen: boolean;
}

const DEFAULT_SETTINGS: JsonObject = { heartbeatInterval: "0.2s", infoInterval: "60s", unhealthyAfter: "60s" };
/** The maximum number of recorded events. An agent causes fewer in any scenario. Further events are ignored. */
const MOST_EVENTS = 100_000;

/** A control plane that follows a script, and checks every proof and every rule of the protocol. */
export class ScriptedPlane {
  readonly events: PlaneEvent[] = [];
  /** Descriptions of the rules that the agent broke. */
  readonly broken: string[] = [];
  #manner = USUAL;
  readonly #scenario: Scenario;
  readonly #streams: OpenStream[] = [];
  readonly #servers: Server[] = [];
  readonly #keys = new RecordedKeys((rule) => this.broken.push(rule));
  #epoch = 0;
  #infoDigest = "";
  #listener: () => void = () => {};
  registryPort = 0;
  firstPort = 0;
  secondPort = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
  }

  async listen(): Promise<void> {
    this.registryPort = await this.#serve(this.#registry());
    this.firstPort = await this.#serve(this.#health("first"));
    this.secondPort = await this.#serve(this.#health("second"));
  }

  /** Set the function to call after each event. */
  onEvent(listener: () => void): void {
    this.#listener = listener;
  }

  set(manner: Manner): void {
    this.#manner = { ...this.#manner, ...manner };
  }

  close(): void {
    for (const server of this.#servers) server.forceShutdown();
  }

  /** Record an event of the agent's streams or of its process. */
  note(kind: EventKind, says: JsonObject): void {
    if (this.events.length >= MOST_EVENTS) return;
    this.events.push({ kind, atMs: performance.now(), says });
    this.#listener();
  }

  /** Send a frame on the newest open stream, or on the stream before it. */
  send(json: JsonObject, on: "newest" | "former" = "newest"): void {
    const frame = fromJson(HeartbeatResponseSchema, this.#filled(json));
    const stream = this.#open(on);
    if (frame.frame.case === "settings") {
      const { heartbeatInterval, generation } = frame.frame.value;
      stream.rules.sentSettings(msOf(heartbeatInterval), generation);
    }
    if (frame.frame.case === "ack" && frame.frame.value.nextIntervalMs > 0) {
      stream.rules.sentInterval();
    }
    if (frame.frame.case === "welcome") {
      stream.rules.welcomed(msOf(frame.frame.value.settings?.heartbeatInterval));
    }
    stream.call.write(frame);
    if (frame.frame.case === "goAway" && frame.frame.value.action !== GoAwayAction.MOVE) this.#end(stream);
  }

  sendBytes(bytes: Buffer): void {
    this.#open("newest").call.write(bytes);
  }

  /** End the newest stream with a status, or break its connection. */
  end(how: Refusal | "broken"): void {
    const stream = this.#open("newest");
    stream.isOpen = false;
    if (how === "broken") stream.call.destroy(new Error("broken on purpose"));
    else stream.call.emit("error", toGrpcStatus(errorOf(how)));
  }

  #open(on: "newest" | "former"): OpenStream {
    const open = this.#streams.filter(({ isOpen }) => isOpen);
    const stream = open.at(on === "newest" ? -1 : -2);
    if (stream === undefined) throw new Error("no stream is open");
    return stream;
  }

  #end(stream: OpenStream): void {
    stream.isOpen = false;
    stream.call.end();
  }

  async #serve(server: Server): Promise<number> {
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port),
      );
    });
  }

  #registry(): Server {
    const { createChallenge, registerNode, rotateNodeKey } = RegistryService.method;
    const server = new Server();
    server.addService(
      {
        createChallenge: bareGrpcMethod(createChallenge),
        registerNode: bareGrpcMethod(registerNode),
        rotateNodeKey: bareGrpcMethod(rotateNodeKey),
      },
      {
        createChallenge: (_: unknown, done: sendUnaryData<unknown>) => {
          if (this.#manner.register === "silent") return;
          const nonce = this.#keys.nonce();
          this.#keys.offer(nonce);
          done(null, create(CreateChallengeResponseSchema, { nonce, clusterId: CLUSTER_ID }));
        },
        registerNode: (call: ServerUnaryCall<RegisterNodeRequest, unknown>, done: sendUnaryData<unknown>) =>
          this.#register(call.request, done),
        rotateNodeKey: (call: ServerUnaryCall<RotateNodeKeyRequest, unknown>, done: sendUnaryData<unknown>) =>
          this.#rotate(call.request, done),
      },
    );
    return server;
  }

  #health(which: "first" | "second"): Server {
    const { heartbeat, serveLogs } = HealthService.method;
    const server = new Server();
    server.addService(
      {
        heartbeat: bareGrpcMethod(heartbeat),
        serveLogs: bareGrpcMethod(serveLogs),
      },
      {
        heartbeat: (call: Stream) => this.#stream(call, which),
        serveLogs: (
          call: ServerReadableStream<{ data: Uint8Array; failure: string }, unknown>,
          done: sendUnaryData<unknown>,
        ) => {
          let text = "";
          let failure = "";
          call.on("data", (piece) => {
            text += Buffer.from(piece.data).toString("utf8");
            failure = piece.failure;
          });
          call.on("end", () => {
            this.note("output", { text, failure });
            done(null, create(ServeLogsResponseSchema));
          });
        },
      },
    );
    return server;
  }

  #register(request: RegisterNodeRequest, done: sendUnaryData<unknown>): void {
    const { nodeId, publicKey, proof, info } = request;
    this.#keys.spend(proof?.nonce);
    this.#keys.check(publicKey, RegistryService.method.registerNode.name, nodeId, proof);
    if (info !== undefined) this.#infoDigest = Buffer.from(nodeInfoDigest(info)).toString("hex");
    const fingerprint = keyFingerprint(publicKey);
    const manner = this.#manner.register;
    this.note("register", { nodeId, key: fingerprint, joinToken: request.joinToken });
    if (typeof manner === "object") {
      done(toGrpcStatus(errorOf(manner)));
      return;
    }
    const known = this.#keys.identities.get(nodeId);
    const result = acceptKey(known?.identity ?? { current: fingerprint, next: null }, fingerprint);
    if (!result.accepted) {
      done(toGrpcStatus(errorOf({ refuse: "NODE_KEY_MISMATCH" })));
      return;
    }
    const keys = known?.keys ?? new Map<string, Uint8Array>();
    keys.set(fingerprint, publicKey);
    this.#keys.identities.set(nodeId, { identity: result.identity, keys });
    if (manner === "lose") {
      done({ code: 14, details: "the answer was lost on purpose" });
      return;
    }
    if (manner === "silent") return;
    const answer = create(RegisterNodeResponseSchema, {
      node: { id: nodeId, membership: { state: MembershipState.APPROVED } },
      clusterId: CLUSTER_ID,
      created: known === undefined,
      // Without a host, the agent uses the registry's host.
      healthEndpoints: [`:${this.firstPort}`],
    });
    done(null, answer);
  }

  #rotate(request: RotateNodeKeyRequest, done: sendUnaryData<unknown>): void {
    const { nodeId, proof, nextPublicKey, nextSignature } = request;
    const manner = this.#manner.rotate;
    const known = this.#keys.identities.get(nodeId);
    this.#keys.spend(proof?.nonce);
    const path = RegistryService.method.rotateNodeKey.name;
    const offered = keyFingerprint(nextPublicKey);
    const used = this.#keys.signer(nodeId, path, proof);
    this.#keys.check(nextPublicKey, path, nodeId, { nonce: proof?.nonce, signature: nextSignature });
    this.note("rotate", { nodeId, used: used ?? "", offered });
    if (typeof manner === "object") {
      done(toGrpcStatus(errorOf(manner)));
      return;
    }
    if (known === undefined || used === null) {
      done(toGrpcStatus(errorOf({ refuse: "PROOF_INVALID" })));
      return;
    }
    const decision = decideRotation(known.identity, { nodeId, used, offered, otherOwner: null, banReason: null });
    if (!decision.ok) {
      done(toGrpcStatus(errorOf({ refuse: decision.refusal.reason })));
      return;
    }
    known.keys.set(offered, nextPublicKey);
    known.identity = decision.identity;
    if (manner === "lose") {
      done({ code: 14, details: "the answer was lost on purpose" });
      return;
    }
    const { current, next } = decision.identity;
    done(null, create(RotateNodeKeyResponseSchema, { keyFingerprint: current, nextKeyFingerprint: next ?? "" }));
  }

  #stream(call: Stream, which: "first" | "second"): void {
    if (this.#manner[which] === "closed") {
      call.emit("error", { code: 14, details: "closed on purpose" });
      return;
    }
    const rules = new StreamRules((rule) => this.broken.push(rule));
    const stream: OpenStream = { call, rules, nonce: this.#keys.nonce(), isOpen: true };
    this.#streams.push(stream);
    const open = this.#streams.filter(({ isOpen }) => isOpen).length;
    this.note("stream", { at: which, open });
    call.write(responseOf({ challenge: { nonce: base64(stream.nonce), clusterId: CLUSTER_ID } }));
    call.on("data", (request: HeartbeatRequest) => this.#frame(stream, request, which));
    const left = (): void => {
      if (!stream.isOpen) return;
      stream.isOpen = false;
      this.note("left", { at: which });
    };
    call.on("end", () => {
      left();
      call.end();
    });
    call.on("cancelled", left);
    call.on("error", left);
  }

  #frame(stream: OpenStream, request: HeartbeatRequest, which: string): void {
    stream.rules.frame(request, performance.now());
    const { frame } = request;
    const [kind, says] = told(request);
    if (frame.case === "hello") {
      this.#hello(stream, frame.value, { ...says, at: which });
      return;
    }
    if (frame.case === "nodeInfo") this.#infoDigest = Buffer.from(nodeInfoDigest(frame.value)).toString("hex");
    this.note(kind, { ...says, at: which });
    if (!stream.isOpen) return;
    if (frame.case === "beat" && this.#manner.acks) {
      stream.call.write(responseOf({ ack: { sequence: frame.value.sequence } }));
    }
    if (frame.case === "executionReport" && !frame.value.more && this.#manner.reportAcks) {
      stream.call.write(responseOf({ reportAck: { number: String(frame.value.number) } }));
    }
    if (frame.case === "wantSpecs") for (const digest of frame.value.digests) this.#spec(stream, digest);
  }

  #spec(stream: OpenStream, digest: Uint8Array): void {
    const { specs } = this.#manner;
    if (specs === "silent") return;
    const named = Object.values(this.#scenario.specs ?? {}).map(specBytes);
    const found = named.find((bytes) => createHash("sha256").update(bytes).digest().equals(digest));
    const spec = specs === "gone" ? Buffer.alloc(0) : specs === "wrong" ? Buffer.from("other bytes") : found;
    if (spec === undefined) this.broken.push("a spec was requested that no reference names");
    else stream.call.write(responseOf({ spec: { digest: base64(digest), spec: base64(spec) } }));
  }

  #hello(stream: OpenStream, hello: Hello, says: JsonObject): void {
    const { nodeId, signature, nodeInfoDigest: digest } = hello;
    const known = this.#keys.identities.get(nodeId);
    const used = this.#keys.signer(nodeId, HealthService.method.heartbeat.name, { nonce: stream.nonce, signature });
    const result = known && used !== null ? acceptKey(known.identity, used) : { accepted: false as const };
    this.note("hello", {
      ...says,
      key: used ?? "",
      isInfoKnown: Buffer.from(digest).toString("hex") === this.#infoDigest,
    });
    if (known !== undefined && used === null) this.broken.push("a Hello is not signed with a key of the node");
    const manner = this.#manner.hello;
    if (manner === "ignore") return;
    if (typeof manner === "object") {
      stream.isOpen = false;
      if ("goAway" in manner) {
        stream.call.write(responseOf({ goAway: this.#filled(manner.goAway) as JsonObject }));
        stream.call.end();
      } else stream.call.emit("error", toGrpcStatus(errorOf(manner)));
      return;
    }
    if (known === undefined || !result.accepted) {
      stream.isOpen = false;
      const reason = known === undefined ? "NODE_NOT_REGISTERED" : "PROOF_INVALID";
      stream.call.emit("error", toGrpcStatus(errorOf({ refuse: reason })));
      return;
    }
    known.identity = result.identity;
    this.#welcome(stream);
  }

  #welcome(stream: OpenStream): void {
    this.#epoch += 1;
    const settings = { ...DEFAULT_SETTINGS, ...this.#scenario.settings, generation: 1 };
    const { heartbeatInterval } = fromJson(SettingsSchema, settings);
    stream.rules.welcomed(msOf(heartbeatInterval));
    const membership = { state: "MEMBERSHIP_STATE_APPROVED" };
    const usual = { sessionEpoch: String(this.#epoch), membership, settings, clusterId: CLUSTER_ID };
    const more = this.#filled(this.#manner.welcome) as JsonObject;
    stream.call.write(responseOf({ welcome: { ...usual, ...more } }));
    this.note("welcomed", { epoch: this.#epoch, open: this.#streams.filter(({ isOpen }) => isOpen).length });
  }

  #filled(json: JsonObject): JsonValue {
    const { firstPort: first, secondPort: second } = this;
    return filled(json, { first, second }, this.#scenario.specs ?? {});
  }
}
