import type { KeyObject } from "node:crypto";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { proofText } from "@rollcall/domain";
import { signProof } from "@rollcall/identity";
import { nodeInfoDigest } from "@rollcall/wire";
import { benchNodeId, benchNodeInfo, benchNodeKey } from "../seeds/bench-nodes.ts";
import type { BeatFrames } from "./beat-frames.ts";
import { Http2Connection } from "./http2-connection.ts";
import { messageFrame } from "./http2-frames.ts";
import type { ServerAddress } from "./open-socket.ts";

const HEARTBEAT_PATH = "/rollcall.health.v1.HealthService/Heartbeat";

/**
 * The number of local addresses to connect from, so that ports never run short. For a socket that is bound to an
 * address, Linux chooses from a quarter of its ephemeral ports, some 7,000. When all of these are taken, each further
 * bind scans all of them.
 */
const LOCAL_ADDRESSES = 200;

// The tag of HeartbeatResponse.ack, which is the first byte of a frame with an Ack. Most responses are Acks, so most
// need not be decoded.
const ACK_TAG = (HeartbeatResponseSchema.field.ack.number << 3) | 2;

/** Any frame of an agent. */
export type RequestFrame = NonNullable<MessageInitShape<typeof HeartbeatRequestSchema>["frame"]>;

/** Callbacks from an agent to the load that drives it. */
export interface AgentListener {
  /**
   * The server has welcomed the agent. Called before the frames that follow, even if they arrive together with the
   * Welcome.
   */
  readonly onWelcome?: (agent: LiveAgent) => void;
  /** The server acknowledged the outstanding Beat. */
  onAck(agent: LiveAgent): void;
  /** The stream has ended, for any reason. `refusal` is the server's error if it sent one. */
  onEnd(agent: LiveAgent, refusal: string): void;
  /** A frame about executions has arrived. Absent for an agent that runs no executions. */
  readonly onWork?: (agent: LiveAgent, frame: HeartbeatResponse["frame"]) => void;
}

/** The identity that an agent sends and proves when it connects. */
export interface AgentIdentity {
  readonly index: number;
  readonly nodeId: string;
  readonly privateKey: KeyObject;
  readonly nodeInfoDigest: Uint8Array;
}

/** Create the identity of the seeded node with this index. This is expensive, so do it before the measurement. */
export function agentIdentity(index: number): AgentIdentity {
  return {
    index,
    nodeId: benchNodeId(index),
    privateKey: benchNodeKey(index).privateKey,
    nodeInfoDigest: nodeInfoDigest(benchNodeInfo(index)),
  };
}

/** The stream of one agent. The agent answers the challenge with a real signature, then sends Beats on request. */
export class LiveAgent {
  readonly identity: AgentIdentity;
  readonly #frames: BeatFrames;
  readonly #listener: AgentListener;
  readonly #connection: Http2Connection;
  #sequence = 0;
  #acknowledged = 0;
  #welcomed: () => void = () => {};
  #turnedAway: (reason: Error) => void = () => {};
  #refusal = "";
  #isChallenged = false;
  #retryAfterMs = 0;
  /** Resolves when the server has welcomed the agent. Rejects if the server refuses the agent. */
  readonly welcome: Promise<void>;

  constructor(identity: AgentIdentity, server: ServerAddress, frames: BeatFrames, listener: AgentListener) {
    this.identity = identity;
    this.#frames = frames;
    this.#listener = listener;
    this.#connection = new Http2Connection(
      { ...server, localAddress: `127.0.0.${2 + (identity.index % LOCAL_ADDRESSES)}` },
      {
        onMessage: (_streamId, message) => this.#take(message),
        onStreamEnd: () => this.close(),
        onClose: () => {
          this.#turnedAway(new Error(`the stream ended: ${this.#refusal}`));
          listener.onEnd(this, this.#refusal);
        },
      },
    );
    this.welcome = new Promise((resolve, reject) => {
      this.#welcomed = resolve;
      this.#turnedAway = reject;
    });
    this.welcome.catch(() => {}); // The code that waits for it handles the error.
  }

  /** Open the stream. Rejects if nothing listens on the port. */
  async open(): Promise<void> {
    await this.#connection.ready;
    this.#connection.openStream(HEARTBEAT_PATH);
  }

  /** Whether the server has sent its Challenge. */
  get isChallenged(): boolean {
    return this.#isChallenged;
  }

  /** The delay that the server asked for before it ended the stream, in milliseconds. */
  get retryAfterMs(): number {
    return this.#retryAfterMs;
  }

  /** The number of Beats sent so far. */
  get beats(): number {
    return this.#sequence;
  }

  /** Whether the last Beat has not been acknowledged yet. */
  get waits(): boolean {
    return this.#acknowledged < this.#sequence;
  }

  /** Sends the next Beat. At most one Beat is outstanding. */
  beat(): void {
    this.#sequence += 1;
    this.#connection.write(this.#frames.at(this.#sequence));
  }

  /** Sends any other frame. */
  send(frame: RequestFrame): void {
    const request = create(HeartbeatRequestSchema, { frame });
    this.#connection.write(messageFrame(1, toBinary(HeartbeatRequestSchema, request)));
  }

  /** Sends the next Beat with a different digest. */
  beatWith(executionsDigest: bigint): void {
    this.#sequence += 1;
    this.send({ case: "beat", value: { sequence: this.#sequence, executionsDigest } });
  }

  close(): void {
    this.#connection.close();
  }

  #take(message: Buffer): void {
    if (message[0] === ACK_TAG) {
      this.#acknowledged = this.#sequence;
      this.#listener.onAck(this);
      return;
    }
    const { frame } = fromBinary(HeartbeatResponseSchema, message);
    if (frame.case === "challenge") this.#hello(frame.value);
    else if (frame.case === "welcome") {
      this.#listener.onWelcome?.(this);
      this.#welcomed();
    } else if (frame.case === "goAway") {
      const { message: refusal, retryAfter } = frame.value;
      this.#refusal = refusal;
      if (retryAfter !== undefined) this.#retryAfterMs = durationMs(retryAfter);
    } else this.#listener.onWork?.(this, frame);
  }

  #hello(challenge: Extract<HeartbeatResponse["frame"], { case: "challenge" }>["value"]): void {
    this.#isChallenged = true;
    const { nodeId, privateKey, nodeInfoDigest: digest } = this.identity;
    const text = proofText({
      method: HEARTBEAT_PATH,
      clusterId: challenge.clusterId,
      nodeId,
      nonce: challenge.nonce,
    });
    const hello = create(HeartbeatRequestSchema, {
      frame: {
        case: "hello",
        value: {
          nodeId,
          signature: signProof(privateKey, text),
          agentVersion: "bench",
          bootId: "bench",
          machineFingerprint: nodeId,
          nodeInfoDigest: digest,
          runsWork: this.#listener.onWork !== undefined,
        },
      },
    });
    this.#connection.write(messageFrame(1, toBinary(HeartbeatRequestSchema, hello)));
  }
}
