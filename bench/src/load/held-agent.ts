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
 * Linux gives a socket that is bound to an address one of a quarter of its ephemeral ports, some 7,000; where they are
 * all taken, each further bind looks at every one of them. So many addresses are never short of ports.
 */
const LOCAL_ADDRESSES = 200;

// An Ack is recognised by the first byte of its frame, the tag of HeartbeatResponse.ack, so that most answers are not
// decoded.
const ACK_TAG = (HeartbeatResponseSchema.field.ack.number << 3) | 2;

/** Any frame of an agent. */
export type RequestFrame = NonNullable<MessageInitShape<typeof HeartbeatRequestSchema>["frame"]>;

/** What an agent tells the load that drives it. */
export interface AgentListener {
  /** The server has taken the agent in: before any frame that follows, which may come with the Welcome. */
  readonly onWelcome?: (agent: HeldAgent) => void;
  /** The server acknowledged the outstanding Beat. */
  onAck(agent: HeldAgent): void;
  /** The stream ended, for whatever reason; `refusal` is the server's word for it if it gave one. */
  onEnd(agent: HeldAgent, refusal: string): void;
  /** A frame about work came. Absent for an agent that runs none. */
  readonly onWork?: (agent: HeldAgent, frame: HeartbeatResponse["frame"]) => void;
}

/** What an agent says and proves when it comes. */
export interface AgentIdentity {
  readonly index: number;
  readonly nodeId: string;
  readonly privateKey: KeyObject;
  readonly nodeInfoDigest: Uint8Array;
}

/** The identity of the seeded node with this index. Costly enough to be made before anything is measured. */
export function agentIdentity(index: number): AgentIdentity {
  return {
    index,
    nodeId: benchNodeId(index),
    privateKey: benchNodeKey(index).privateKey,
    nodeInfoDigest: nodeInfoDigest(benchNodeInfo(index)),
  };
}

/** One agent's stream: it answers the challenge with a real signature, then beats when it is told to. */
export class HeldAgent {
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
  /** Settles when the server has taken the agent in; rejects when it would not. */
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
    this.welcome.catch(() => {}); // Surfaced by the code that waits for it.
  }

  /** Open the stream. Rejects when nothing listens. */
  async open(): Promise<void> {
    await this.#connection.ready;
    this.#connection.openStream(HEARTBEAT_PATH);
  }

  /** Whether the server has sent its Challenge. */
  get isChallenged(): boolean {
    return this.#isChallenged;
  }

  /** What the server asked for before it ended the stream, in milliseconds. */
  get retryAfterMs(): number {
    return this.#retryAfterMs;
  }

  /** Beats sent so far. */
  get beats(): number {
    return this.#sequence;
  }

  /** Whether a Beat waits for its Ack. */
  get waits(): boolean {
    return this.#acknowledged < this.#sequence;
  }

  /** Sends the next Beat. At most one may be outstanding. */
  beat(): void {
    this.#sequence += 1;
    this.#connection.write(this.#frames.at(this.#sequence));
  }

  /** Sends any other frame. */
  send(frame: RequestFrame): void {
    const request = create(HeartbeatRequestSchema, { frame });
    this.#connection.write(messageFrame(1, toBinary(HeartbeatRequestSchema, request)));
  }

  /** Sends the next Beat with a digest of its own. */
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
