import { type KeyObject, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ClientOptions } from "@grpc/grpc-js";
import {
  type Challenge,
  type GoAway,
  GoAwayAction,
  type HelloSchema,
  type Welcome,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { proofText } from "@rollcall/domain";
import { generateKeyPair, signProof } from "@rollcall/identity";
import { FakeStream, HEARTBEAT_METHOD, type StreamAgent } from "./fake-stream.ts";

export interface FakeAgentOptions {
  readonly nodeId: string;
  /** The key it signs with; a new one unless given. */
  readonly keyPair?: { readonly publicKey: Uint8Array; readonly privateKey: KeyObject };
}

/** How an agent lives by itself. */
export interface FakeLife {
  /** Where it may connect, each as HOST:PORT; asked each time. */
  readonly endpoints: () => readonly string[];
  readonly beatEveryMs: number;
  /** Longest wait between two attempts where the server gives no time. Default 500. */
  readonly backoffMs?: number;
}

const DEFAULT_BACKOFF_MS = 500;
const LOOK_EVERY_MS = 20;

/**
 * An agent with a real key and real connections, one for each of its streams. It does exactly what a test tells it,
 * frame by frame; or it lives by itself and behaves: it beats, comes back when its stream ends, and moves when it is
 * asked to, leaving the old stream after the new one's Welcome.
 */
export class FakeAgent implements StreamAgent {
  readonly nodeId: string;
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
  /** Of the machine that it plays; a Hello may say another. */
  readonly bootId = randomUUID();
  readonly #streams = new Set<FakeStream>();
  /** Ends its life, while it has one. */
  #ending = new AbortController();
  #endpoint = "";
  /** What the last stream ended with. */
  #farewell: GoAway | undefined;
  #welcomes = 0;
  #moves = 0;
  #turn = 0;
  #acknowledgedAtMs: number | null = null;
  #longestGapMs = 0;

  constructor(options: FakeAgentOptions) {
    const keyPair = options.keyPair ?? generateKeyPair();
    this.nodeId = options.nodeId;
    this.publicKey = keyPair.publicKey;
    this.privateKey = keyPair.privateKey;
  }

  /** Open a stream; nothing is sent yet. `address` is HOST:PORT. */
  open(address: string, options: ClientOptions = {}): FakeStream {
    const stream = new FakeStream(this, address, options);
    this.#streams.add(stream);
    return stream;
  }

  /** Open a stream, say hello, and wait for the Welcome. */
  async join(
    address: string,
    hello: MessageInitShape<typeof HelloSchema> = {},
  ): Promise<FakeStream & { readonly welcome: Welcome }> {
    const stream = this.open(address);
    await stream.hello(hello);
    return Object.assign(stream, { welcome: await stream.nextOf("welcome") });
  }

  /** Sign a challenge as this agent's Hello would. */
  sign(challenge: Pick<Challenge, "nonce" | "clusterId">, nodeId = this.nodeId): Uint8Array {
    const { nonce, clusterId } = challenge;
    return signProof(this.privateKey, proofText({ method: HEARTBEAT_METHOD, clusterId, nodeId, nonce }));
  }

  /** Live by itself until it is closed. */
  live(life: FakeLife): void {
    this.#ending = new AbortController();
    void this.#live(life, this.#ending.signal);
  }

  /** Where its stream is while it lives by itself; empty while it has none. */
  get endpoint(): string {
    return this.#endpoint;
  }

  /** How often it was taken in since it lives by itself. */
  get welcomes(): number {
    return this.#welcomes;
  }

  /** How often it was asked to move, and did. */
  get moves(): number {
    return this.#moves;
  }

  /** Longest time between two Acks, by its own monotonic clock: one without a gap must never have been judged. */
  get longestGapMs(): number {
    return this.#longestGapMs;
  }

  /** End its life, and break all of its connections, without a word to the server. */
  close(): void {
    this.#ending.abort();
    for (const stream of this.#streams) stream.breakConnection();
    this.#streams.clear();
  }

  async #live(life: FakeLife, ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      const waitMs = await this.#hold(life, ended).catch(() => backoffMs(life));
      this.#endpoint = "";
      // It rejects only at the end.
      await pause(waitMs, undefined, { signal: ended }).catch(() => {});
    }
  }

  /** Hold a session, and those that it moves to, until one ends. Answers how long to wait. */
  async #hold(life: FakeLife, ended: AbortSignal): Promise<number> {
    let stream = await this.#enter(this.#next(life, ""));
    while (!ended.aborted) {
      const asked = await this.#beatUntilAsked(stream, life, ended);
      if (asked === null) {
        this.#read(stream);
        stream.breakConnection();
        return waitOf(this.#farewell) ?? backoffMs(life);
      }
      stream = await this.#move(stream, asked, life, ended);
    }
    stream.breakConnection();
    return 0;
  }

  /** Beat until it is asked to move; null when the stream has ended. */
  async #beatUntilAsked(stream: FakeStream, { beatEveryMs }: FakeLife, ended: AbortSignal): Promise<GoAway | null> {
    let dueMs = performance.now();
    while (stream.ended === undefined && !ended.aborted) {
      if (performance.now() >= dueMs) {
        stream.beat();
        dueMs = performance.now() + beatEveryMs;
      }
      await pause(LOOK_EVERY_MS);
      const asked = this.#read(stream);
      if (asked !== null) return asked;
    }
    return null;
  }

  /** Go on beating on the old stream while the new one is opened. */
  async #move(old: FakeStream, goAway: GoAway, life: FakeLife, ended: AbortSignal): Promise<FakeStream> {
    const atMs = performance.now() + (waitOf(goAway) ?? 0);
    const from = this.#endpoint;
    const opened = (async () => {
      while (performance.now() < atMs && old.ended === undefined) await pause(LOOK_EVERY_MS);
      ended.throwIfAborted();
      return this.#enter(goAway.endpoints[0] ?? this.#next(life, from));
    })();
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    opened.then(settled, settled);
    while (!isSettled && !ended.aborted) {
      if (old.ended === undefined) old.beat();
      await pause(life.beatEveryMs / 2);
      this.#read(old);
    }
    try {
      const stream = await opened;
      this.#moves += 1;
      old.breakConnection();
      return stream;
    } catch {
      // No server took it: it stays where it is.
      return old;
    }
  }

  /** Take what has come; the last of it that asks to move. */
  #read(stream: FakeStream): GoAway | null {
    let asked: GoAway | null = null;
    for (const { frame } of stream.take()) {
      if (frame.case === "ack") this.#noteAck();
      if (frame.case !== "goAway") continue;
      if (frame.value.action === GoAwayAction.MOVE) asked = frame.value;
      else this.#farewell = frame.value;
    }
    return asked;
  }

  #noteAck(): void {
    const nowMs = performance.now();
    const before = this.#acknowledgedAtMs ?? nowMs;
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - before);
    this.#acknowledgedAtMs = nowMs;
  }

  async #enter(endpoint: string): Promise<FakeStream> {
    const stream = await this.join(endpoint, { bootId: "steady", machineFingerprint: this.nodeId });
    this.#farewell = undefined;
    this.#endpoint = endpoint;
    this.#welcomes += 1;
    return stream;
  }

  #next({ endpoints }: FakeLife, except: string): string {
    const all = endpoints();
    const others = all.filter((it) => it !== except);
    const choice = others.length > 0 ? others : all;
    this.#turn += 1;
    return choice[this.#turn % choice.length] ?? "";
  }
}

function backoffMs({ backoffMs: mostMs = DEFAULT_BACKOFF_MS }: FakeLife): number {
  return Math.random() * mostMs;
}

function waitOf(goAway: GoAway | undefined): number | undefined {
  return goAway?.retryAfter && durationMs(goAway.retryAfter);
}

/** The fake agents of a test, closed together. */
export class FakeAgents {
  readonly #agents: FakeAgent[] = [];

  create(nodeId: string): FakeAgent {
    const agent = new FakeAgent({ nodeId });
    this.#agents.push(agent);
    return agent;
  }

  /** Break all connections of all of them. */
  close(): void {
    for (const agent of this.#agents.splice(0)) agent.close();
  }
}
