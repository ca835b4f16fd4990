import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  Client,
  type ClientDuplexStream,
  type ClientOptions,
  credentials,
  Metadata,
  type StatusObject,
} from "@grpc/grpc-js";
import {
  type Challenge,
  type GoAway,
  HealthService,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
  HelloSchema,
  ServeLogsRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { describeError, type ErrorDescription } from "@rollcall/errors";
import { errorFromGrpc } from "@rollcall/rpc";

/** The full method name in the proof of a Hello. */
export const HEARTBEAT_METHOD = `/${HealthService.typeName}/${HealthService.method.heartbeat.name}`;

/** The content of an agent's frame, with its case, for example `{ case: "beat", value: { sequence: 1 } }`. */
export type AgentFrame = NonNullable<MessageInitShape<typeof HeartbeatRequestSchema>["frame"]>;

/** A piece of output as an agent sends it. */
export type LogFrame = MessageInitShape<typeof ServeLogsRequestSchema>;

/** A call of ServeLogs that the test controls piece by piece. */
export interface LogCall {
  /** Send a piece, or any bytes as one message. Resolves once the server accepts more data. */
  send(piece: LogFrame | Buffer): Promise<void>;
  /** End the sending side. */
  end(): void;
  /** How the call ended. */
  readonly ended: Promise<StreamEnd>;
}

/** One kind of frame that a server sends. */
export type ServerFrameCase = NonNullable<HeartbeatResponse["frame"]["case"]>;

/** How a stream ended. */
export interface StreamEnd {
  /** The gRPC status code; 0 for a normal end. */
  readonly code: number;
  /** The details of the status; undefined for a normal end. */
  readonly error: ErrorDescription | undefined;
}

/** The agent that sends a Hello on a stream. */
export interface StreamAgent {
  readonly nodeId: string;
  readonly bootId: string;
  /** Sign a challenge as this agent's Hello does. */
  sign(challenge: Pick<Challenge, "nonce" | "clusterId">): Uint8Array;
}

/** How long to wait for a frame or the end of a stream, in milliseconds. */
const PATIENCE_MS = 60_000;

/** One heartbeat stream that the test controls frame by frame. */
export class FakeStream {
  readonly #agent: StreamAgent;
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Uint8Array, HeartbeatResponse>;
  readonly #received: HeartbeatResponse[] = [];
  readonly #waiting = new Set<() => void>();
  #ended: StreamEnd | undefined;
  #sequence = 0;

  constructor(agent: StreamAgent, address: string, options: ClientOptions) {
    this.#agent = agent;
    // Do not share connections between streams, because breaking one stream would break the others.
    const local = { "grpc.use_local_subchannel_pool": 1, ...options };
    this.#client = new Client(address, credentials.createInsecure(), local);
    this.#call = this.#client.makeBidiStreamRequest(
      HEARTBEAT_METHOD,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => fromBinary(HeartbeatResponseSchema, bytes),
      new Metadata(),
    );
    this.#call.on("data", (frame: HeartbeatResponse) => {
      this.#received.push(frame);
      this.#wake();
    });
    // Ignore the error, which has the same content as the status. Without a listener, it would end the process.
    this.#call.on("error", () => {});
    this.#call.on("status", (status: StatusObject) => {
      this.#ended = toStreamEnd(status);
      this.#wake();
    });
  }

  /** The sequence of the last Beat sent by beat(). */
  get sequence(): number {
    return this.#sequence;
  }

  /** How the stream ended; undefined while the stream is open. */
  get ended(): StreamEnd | undefined {
    return this.#ended;
  }

  /** Frames that were received but not taken yet. */
  get pending(): readonly HeartbeatResponse[] {
    return this.#received;
  }

  /** Take all pending frames. */
  take(): readonly HeartbeatResponse[] {
    return this.#received.splice(0);
  }

  /** Open a call for output on the connection of the stream. */
  serveLogs(): LogCall {
    const call = this.#client.makeClientStreamRequest(
      `/${HealthService.typeName}/${HealthService.method.serveLogs.name}`,
      (piece: LogFrame | Buffer) =>
        Buffer.isBuffer(piece)
          ? piece
          : Buffer.from(toBinary(ServeLogsRequestSchema, create(ServeLogsRequestSchema, piece))),
      (bytes) => bytes,
      () => {},
    );
    call.on("error", () => {});
    const ended = new Promise<StreamEnd>((resolve) => {
      call.on("status", (status: StatusObject) => resolve(toStreamEnd(status)));
    });
    const send = (piece: LogFrame | Buffer) => new Promise<void>((resolve) => call.write(piece, () => resolve()));
    return { send, end: () => call.end(), ended };
  }

  send(frame: AgentFrame): void {
    this.sendBytes(toBinary(HeartbeatRequestSchema, create(HeartbeatRequestSchema, { frame })));
  }

  /** Send any bytes as one message. */
  sendBytes(bytes: Uint8Array): void {
    this.#call.write(bytes);
  }

  /** Wait for the Challenge and send a Hello; `overrides` replaces fields of an honest Hello. */
  async hello(overrides: MessageInitShape<typeof HelloSchema> = {}): Promise<Challenge> {
    const challenge = await this.nextOf("challenge");
    const value = create(HelloSchema, {
      nodeId: this.#agent.nodeId,
      signature: this.#agent.sign(challenge),
      agentVersion: "0.1.0",
      bootId: this.#agent.bootId,
      machineFingerprint: "fake",
      ...overrides,
    });
    this.send({ case: "hello", value });
    return challenge;
  }

  /**
   * Send the next Beat. The Beat acknowledges `settingsGeneration`, unless this parameter is 0. Returns the Beat's
   * sequence.
   */
  beat(usage?: MessageInitShape<typeof ResourceUsageSchema>, settingsGeneration = 0): number {
    this.#sequence += 1;
    const sequence = this.#sequence;
    const value = { sequence, settingsGeneration };
    this.send({ case: "beat", value: usage === undefined ? value : { ...value, usage } });
    return sequence;
  }

  /** Send the next Beat and wait until it is acknowledged. */
  async beatAcknowledged(usage?: MessageInitShape<typeof ResourceUsageSchema>, settingsGeneration = 0): Promise<void> {
    const sequence = this.beat(usage, settingsGeneration);
    let acknowledged = 0;
    while (acknowledged < sequence) acknowledged = (await this.nextOf("ack")).sequence;
  }

  /** Take the next frame. Rejects if the stream ends first, or after a minute. */
  async next(): Promise<HeartbeatResponse> {
    await this.#until("a frame", () => this.#received.length > 0 || this.#ended !== undefined);
    const frame = this.#received.shift();
    if (frame === undefined) throw new Error(`the stream ended: ${JSON.stringify(this.#ended)}`);
    return frame;
  }

  /** Take frames until the next frame of this kind, and return that frame. */
  async nextOf<C extends ServerFrameCase>(
    wanted: C,
  ): Promise<Extract<HeartbeatResponse["frame"], { case: C }>["value"]> {
    for (;;) {
      const { frame } = await this.next();
      if (frame.case === wanted) return frame.value as never;
    }
  }

  /** Wait for the end of the stream. Returns the status, and the GoAway before it if there was one. */
  async end(): Promise<StreamEnd & { readonly goAway: GoAway | undefined }> {
    await this.#until("the end of the stream", () => this.#ended !== undefined);
    const goAway = this.#received.find(({ frame }) => frame.case === "goAway")?.frame.value;
    return { ...(this.#ended as StreamEnd), goAway: goAway as GoAway | undefined };
  }

  /** Half-close the stream by ending the sending side. */
  halfClose(): void {
    this.#call.end();
  }

  /** Abort the call; the connection stays open. */
  cancel(): void {
    this.#call.cancel();
  }

  /** Stop reading frames from the server. */
  pause(): void {
    this.#call.pause();
  }

  resume(): void {
    this.#call.resume();
  }

  /** Break the connection of the stream. */
  breakConnection(): void {
    this.#call.cancel();
    this.#client.close();
  }

  #wake(): void {
    for (const check of [...this.#waiting]) check();
  }

  #until(what: string, isDone: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        settle();
      };
      const timer = setTimeout(
        () => finish(() => reject(new Error(`waited ${PATIENCE_MS} ms for ${what}`))),
        PATIENCE_MS,
      );
      const check = () => {
        if (isDone()) finish(resolve);
      };
      this.#waiting.add(check);
      check();
    });
  }
}

function toStreamEnd(status: StatusObject): StreamEnd {
  if (status.code === 0) return { code: 0, error: undefined };
  const error = Object.assign(new Error(status.details), status);
  return { code: status.code, error: describeError(errorFromGrpc(error)) };
}
