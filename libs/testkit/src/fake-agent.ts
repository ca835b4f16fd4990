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
  /** The agent's key. Default: a new one. */
  readonly keyPair?: { readonly publicKey: Uint8Array; readonly privateKey: KeyObject };
}

/** How an agent behaves in automatic mode. */
export interface FakeLife {
  /** The endpoints that the agent can connect to, each as HOST:PORT. Called before each attempt. */
  readonly endpoints: () => readonly string[];
  readonly beatEveryMs: number;
  /** Maximum delay between two attempts, in milliseconds, if the server gives none. Default 500. */
  readonly backoffMs?: number;
}

const DEFAULT_BACKOFF_MS = 500;
const SCAN_EVERY_MS = 20;

/**
 * An agent with a real key and real connections, one for each of its streams. Tests control it frame by frame, or
 * let it run automatically. In automatic mode it behaves well: it sends Beats, reconnects when its stream ends, and
 * moves when the server asks it to. When it moves, it leaves the old stream after the new stream's Welcome.
 */
export class FakeAgent implements StreamAgent {
  readonly nodeId: string;
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
  /** The boot id of the simulated machine; a Hello can override it. */
  readonly bootId = randomUUID();
  readonly #streams = new Set<FakeStream>();
  /** Ends the automatic mode. */
  #ending = new AbortController();
  #endpoint = "";
  /** How the last stream ended. */
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

  /** Open a stream without sending anything yet. `address` is HOST:PORT. */
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

  /** Run automatically until the agent is closed. */
  live(life: FakeLife): void {
    this.#ending = new AbortController();
    void this.#live(life, this.#ending.signal);
  }

  /** The endpoint of the stream in automatic mode; empty without a stream. */
  get endpoint(): string {
    return this.#endpoint;
  }

  /** Number of Welcomes in automatic mode. */
  get welcomes(): number {
    return this.#welcomes;
  }

  /** Number of times that the agent moved on request. */
  get moves(): number {
    return this.#moves;
  }

  /**
   * The longest time between two Acks, by the monotonic clock. If this time is short, the node must never have been
   * declared unhealthy.
   */
  get longestGapMs(): number {
    return this.#longestGapMs;
  }

  /** Stop the agent, and break all of its connections without notifying the server. */
  close(): void {
    this.#ending.abort();
    for (const stream of this.#streams) stream.breakConnection();
    this.#streams.clear();
  }

  async #live(life: FakeLife, ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      const waitMs = await this.#hold(life, ended).catch(() => backoffMs(life));
      this.#endpoint = "";
      // Ignore the rejection, because pause() rejects only when the agent is closed.
      await pause(waitMs, undefined, { signal: ended }).catch(() => {});
    }
  }

  /** Keep a session open, moving it when asked to, until it ends. Returns the delay before the next attempt. */
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

  /** Send Beats until the server asks the agent to move. Returns null if the stream has ended. */
  async #beatUntilAsked(stream: FakeStream, { beatEveryMs }: FakeLife, ended: AbortSignal): Promise<GoAway | null> {
    let dueMs = performance.now();
    while (stream.ended === undefined && !ended.aborted) {
      if (performance.now() >= dueMs) {
        stream.beat();
        dueMs = performance.now() + beatEveryMs;
      }
      await pause(SCAN_EVERY_MS);
      const asked = this.#read(stream);
      if (asked !== null) return asked;
    }
    return null;
  }

  /** Open a new stream, and send Beats on the old one until the new one is open. */
  async #move(old: FakeStream, goAway: GoAway, life: FakeLife, ended: AbortSignal): Promise<FakeStream> {
    const atMs = performance.now() + (waitOf(goAway) ?? 0);
    const from = this.#endpoint;
    const opened = (async () => {
      while (performance.now() < atMs && old.ended === undefined) await pause(SCAN_EVERY_MS);
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
      // Keep the old stream, because no server accepted the agent.
      return old;
    }
  }

  /** Take all received frames. Returns the last request to move. */
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

  /** Break all connections of all agents. */
  close(): void {
    for (const agent of this.#agents.splice(0)) agent.close();
  }
}
