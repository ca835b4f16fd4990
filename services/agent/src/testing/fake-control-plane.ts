import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type GoAwaySchema,
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
  type SettingsSchema,
  WelcomeSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { decideRotation, proofText, type RotationAnswer } from "@rollcall/domain";
import { refuse, toConnectError } from "@rollcall/errors";
import { keyFingerprint, verifyProof } from "@rollcall/identity";
import type { KeyOffer, Registered, Registrar, Registration } from "../registration/registrar.ts";
import type { HeartbeatStream, HeartbeatTransport, StreamListener } from "../stream/heartbeat-transport.ts";
import { HEARTBEAT_METHOD, toDuration } from "../stream/hello.ts";

/** How the network between an agent and an endpoint behaves. */
export type Path = "open" | "refused" | "black-hole";

/** The server's side of one stream. */
export interface ServedStream {
  readonly endpoint: string;
  /** Every frame received, in order. */
  readonly received: readonly HeartbeatRequest["frame"][];
  /** Whether beats are acknowledged. Default true. */
  acking: boolean;
  /** Whether neither side has ended the stream. */
  readonly isOpen: boolean;
  /** Whether the agent has ended its side. */
  readonly isFinished: boolean;
  send(frame: NonNullable<MessageInitShape<typeof HeartbeatResponseSchema>["frame"]>): void;
  goAway(goAway: MessageInitShape<typeof GoAwaySchema>): void;
  /** End the stream with an error's status, or normally without an error. */
  end(error?: unknown): void;
}

/** A control plane in memory: it verifies proofs, remembers keys, and treats its agents as a test requires. */
export class FakeControlPlane implements HeartbeatTransport, Registrar {
  readonly clusterId = "cluster-1";
  readonly streams: ServedStream[] = [];
  readonly registrations: Pick<Registration, "nodeId" | "info" | "joinToken">[] = [];
  /** The endpoint of each attempt to open a stream. */
  readonly attempts: string[] = [];
  readonly paths = new Map<string, Path>();
  endpoints: readonly string[] = ["10.0.0.1:7701"];
  registryError: unknown;
  membership: MembershipState = MembershipState.APPROVED;
  settings: MessageInitShape<typeof SettingsSchema> = {
    heartbeatInterval: toDuration(15_000),
    infoInterval: toDuration(60_000),
    unhealthyAfter: toDuration(60_000),
  };
  /** Fields of the Welcome that the server sends. */
  welcome: {
    readonly nodeInfoWanted?: boolean;
    readonly healthEndpoints?: string[];
    readonly serverTime?: { readonly seconds: bigint; readonly nanos: number };
  } = {};
  /** A GoAway to send instead of a Welcome, while this is set. */
  refusal: MessageInitShape<typeof GoAwaySchema> | undefined;
  /** While this is set, a Hello gets no response. */
  ignoresHello = false;
  #epoch = 0n;
  readonly #keys = new Map<string, Uint8Array>();
  readonly #nextKeys = new Map<string, Uint8Array>();
  /** Fingerprints of next keys, in the order of their offers. */
  readonly offers: string[] = [];
  /** While this is set, offers are accepted but the responses are lost. */
  losesRotationAnswers = false;

  /** The newest stream. */
  get latest(): ServedStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error("no stream was opened");
    return stream;
  }

  /** Behave as if the node had never registered. */
  forget(nodeId: string): void {
    this.#keys.delete(nodeId);
  }

  /** Set the node's key, as if it had been changed elsewhere. */
  adopt(nodeId: string, publicKey: Uint8Array): void {
    this.#keys.set(nodeId, publicKey);
  }

  async register(registration: Registration, signal: AbortSignal): Promise<Registered> {
    signal.throwIfAborted();
    const { nodeId, keyPair, info, joinToken } = registration;
    this.registrations.push({ nodeId, info, joinToken });
    if (this.registryError !== undefined) throw this.registryError;
    const known = this.#keys.get(nodeId);
    if (known !== undefined && keyFingerprint(known) !== keyFingerprint(keyPair.publicKey)) {
      throw refuse("NODE_KEY_MISMATCH", `node ${nodeId} has another key`);
    }
    this.#keys.set(nodeId, keyPair.publicKey);
    return {
      clusterId: this.clusterId,
      healthEndpoints: this.endpoints,
      membership: this.membership === MembershipState.PENDING ? "PENDING" : "APPROVED",
      created: known === undefined,
    };
  }

  async rotateKey(offer: KeyOffer, signal: AbortSignal): Promise<RotationAnswer> {
    signal.throwIfAborted();
    const { nodeId, keyPair, next } = offer;
    if (this.registryError !== undefined) throw this.registryError;
    const offered = keyFingerprint(next.publicKey);
    this.offers.push(offered);
    const known = this.#keys.get(nodeId);
    const current = known === undefined ? "" : keyFingerprint(known);
    const pending = this.#nextKeys.get(nodeId);
    const facts = { nodeId, offered, otherOwner: null, banReason: null };
    const decision = decideRotation(
      { current, next: pending === undefined ? null : keyFingerprint(pending) },
      { ...facts, used: keyFingerprint(keyPair.publicKey) },
    );
    if (!decision.ok) throw refuse(decision.refusal.reason, decision.refusal.message);
    const { identity } = decision;
    if (identity.current === offered) this.#keys.set(nodeId, next.publicKey);
    if (identity.next === offered) this.#nextKeys.set(nodeId, next.publicKey);
    else this.#nextKeys.delete(nodeId);
    if (this.losesRotationAnswers) throw new Error("the answer was lost");
    return identity;
  }

  resolve(endpoints: readonly string[]): readonly string[] {
    return endpoints;
  }

  open(endpoint: string, listener: StreamListener): HeartbeatStream {
    this.attempts.push(endpoint);
    const path = this.paths.get(endpoint) ?? "open";
    if (path === "black-hole") return NO_STREAM;
    if (path === "refused") {
      const error = Object.assign(new Error(), { code: 14, details: "connection refused" });
      queueMicrotask(() => listener.onEnd(error));
      return NO_STREAM;
    }
    return this.#serve(endpoint, listener);
  }

  #serve(endpoint: string, listener: StreamListener): HeartbeatStream {
    const nonce = new Uint8Array(16).fill(this.streams.length + 1);
    const received: HeartbeatRequest["frame"][] = [];
    let isOpen = true;
    let isFinished = false;
    const deliver = (frame: HeartbeatResponse["frame"]): void => {
      queueMicrotask(() => {
        if (isOpen) listener.onFrame(create(HeartbeatResponseSchema, { frame }));
      });
    };
    const stream: ServedStream = {
      endpoint,
      received,
      acking: true,
      get isOpen() {
        return isOpen;
      },
      get isFinished() {
        return isFinished;
      },
      send: (frame) => deliver(create(HeartbeatResponseSchema, { frame }).frame),
      goAway: (value) => stream.send({ case: "goAway", value }),
      end: (error) => {
        queueMicrotask(() => {
          if (!isOpen) return;
          isOpen = false;
          listener.onEnd(error);
        });
      },
    };
    this.streams.push(stream);
    stream.send({ case: "challenge", value: { nonce, clusterId: this.clusterId } });
    return {
      ...NO_STREAM,
      send: ({ frame }) => {
        if (!isOpen) return;
        received.push(frame);
        this.#answer(stream, nonce, frame);
      },
      finish: () => {
        isFinished = true;
        stream.end();
      },
      cancel: () => {
        isOpen = false;
      },
    };
  }

  #answer(stream: ServedStream, nonce: Uint8Array, frame: HeartbeatRequest["frame"]): void {
    if (frame.case === "beat" && stream.acking) {
      stream.send({ case: "ack", value: { sequence: frame.value.sequence } });
    }
    if (frame.case !== "hello" || this.ignoresHello) return;
    const { nodeId, signature } = frame.value;
    const known = this.#keys.get(nodeId);
    const next = this.#nextKeys.get(nodeId);
    const text = proofText({ method: HEARTBEAT_METHOD, clusterId: this.clusterId, nodeId, nonce });
    const isNext = next !== undefined && verifyProof(next, text, signature);
    const key = isNext && this.refusal === undefined ? next : known;
    if (key === next && key !== undefined) {
      this.#keys.set(nodeId, key);
      this.#nextKeys.delete(nodeId);
    }
    if (this.refusal !== undefined) {
      stream.goAway(this.refusal);
    } else if (key === undefined) {
      stream.end(toConnectError(refuse("NODE_NOT_REGISTERED", `node ${nodeId} is not registered`)));
    } else if (!verifyProof(key, text, signature)) {
      stream.end(toConnectError(refuse("PROOF_INVALID", "the proof is no signature of this stream")));
    } else {
      this.#epoch += 1n;
      stream.send({
        case: "welcome",
        value: create(WelcomeSchema, {
          sessionEpoch: this.#epoch,
          membership: { state: this.membership },
          settings: this.settings,
          clusterId: this.clusterId,
          ...this.welcome,
        }),
      });
    }
  }
}

/** A stream in clear text that discards its frames. No test that uses it reads output. */
const NO_STREAM: HeartbeatStream = {
  peerChain: [],
  send: () => {},
  finish: () => {},
  cancel: () => {},
  openOutput: () => {
    throw new Error("this control plane reads no output");
  },
};
