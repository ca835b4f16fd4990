import { connect, type Socket } from "node:net";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type Greeting,
  type KeeperFrame,
  KeeperFrameSchema,
  type KeeperReply,
  KeeperRequestSchema,
  type KeptExecution,
  type KeeperRequestSchema as RequestSchema,
} from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import { FrameReader, frameMessage } from "@rollcall/wire";

/** How the keeper of this machine is reached, and started where none answers. */
export interface KeeperAccess {
  readonly socketPath: string;
  /** Start one; null where a service manager does. */
  readonly start: (() => Promise<void>) | null;
  /** Whether the machine is to offer executors: without any, a keeper that is away is no fault. */
  readonly isNeeded: boolean;
  /** What a keeper of this version and these settings says; another one is asked to retire. */
  readonly expected: { readonly version: string; readonly settingsDigest: string };
}

/** How a keeper is asked. */
export interface KeeperPort {
  /** When the keeper was last heard, by the monotonic clock; null before the first time. */
  readonly heardAtMs: number | null;
  /** Stay connected until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Rejects with KeeperRefused when the keeper refuses, and with another error where there is none. */
  request(request: KeeperRequestInit): Promise<KeeperReply>;
}

/** What an agent hears of its keeper. */
export interface KeeperListener {
  /** A keeper answers. Its executions follow. */
  onGreeting(greeting: Greeting): void;
  /** What the keeper says of itself has changed. */
  onOffer(greeting: Greeting): void;
  onChanged(kept: KeptExecution): void;
  /** All that the keeper has was named since the greeting. */
  onListed(): void;
  /** The keeper that greeted does not answer any more. */
  onGone(): void;
}

/** What can be asked of a keeper. */
export type KeeperRequestInit = NonNullable<MessageInitShape<typeof RequestSchema>["request"]>;

/** What a link works with. */
export interface KeeperLinkOptions {
  readonly access: KeeperAccess;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

const BASE_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
const ANSWER_LIMIT_MS = 30_000;

/** How often the keeper is asked whether it works. */
const PROBE_EVERY_MS = 5_000;

/** Requests without an answer. */
const MOST_UNANSWERED = 5_000;

/** Starting a keeper again and again would hide what is wrong with it. */
const START_EVERY_MS = 10_000;

/** The keeper refused a request, or there is none. */
class KeeperError extends Error {
  override readonly name: string = "KeeperError";
}

/** The keeper refused a request, or failed to handle it. */
export class KeeperRefused extends KeeperError {
  override readonly name = "KeeperRefused";
  /** Whether it failed, rather than refused. */
  readonly hasFailed: boolean;

  constructor(message: string, hasFailed = false) {
    super(message);
    this.hasFailed = hasFailed;
  }
}

interface Waiting {
  readonly resolve: (reply: KeeperReply) => void;
  readonly reject: (error: Error) => void;
}

/** Keeps a connection to the keeper of this machine. */
export class KeeperLink implements KeeperPort {
  readonly #options: KeeperLinkOptions;
  readonly #listener: KeeperListener;
  readonly #waiting = new Map<number, Waiting>();
  #socket: Socket | null = null;
  #heardAtMs: number | null = null;
  #nextId = 1;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #hasRetired = false;
  #hasGreeted = false;

  constructor(options: KeeperLinkOptions, listener: KeeperListener) {
    this.#options = options;
    this.#listener = listener;
  }

  get heardAtMs(): number | null {
    return this.#heardAtMs;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#hold(signal, () => {
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        if (failures === 0) log.warn({ err: error }, "keeper cannot be reached");
        // One that was started answers soon.
        failures = (await this.#startOne()) ? 1 : failures + 1;
      }
      const pauseMs = fullJitter({ attempt: failures, baseMs: BASE_PAUSE_MS, maxMs: MAX_PAUSE_MS, random01: random() });
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  async request(request: KeeperRequestInit): Promise<KeeperReply> {
    const socket = this.#socket;
    if (socket === null) throw new KeeperError("the keeper of this machine does not answer");
    if (this.#waiting.size >= MOST_UNANSWERED) throw new KeeperError("the keeper of this machine is behind");
    const id = this.#nextId;
    this.#nextId = (id % 0xffff_ffff) + 1;
    const message = create(KeeperRequestSchema, { id, request });
    const reply = new Promise<KeeperReply>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
    socket.write(frameMessage(toBinary(KeeperRequestSchema, message)));
    const answered = await this.#inTime(reply);
    if (answered.error !== "") throw new KeeperRefused(answered.error, answered.failed);
    return answered;
  }

  async #inTime(reply: Promise<KeeperReply>): Promise<KeeperReply> {
    const over = new AbortController();
    const late = this.#options.clock.sleep(ANSWER_LIMIT_MS, over.signal).then(() => {
      // What does not answer is not waited for: the next connection begins with the whole list.
      this.#socket?.destroy();
      throw new KeeperError("the keeper of this machine did not answer in time");
    });
    try {
      return await Promise.race([reply, late]);
    } finally {
      over.abort();
      late.catch(() => {});
    }
  }

  async #hold(signal: AbortSignal, onConnected: () => void): Promise<void> {
    const socket = connect(this.#options.access.socketPath);
    const onAbort = (): void => void socket.destroy();
    const ended = new AbortController();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once("connect", resolve);
        socket.once("error", reject);
      });
      this.#socket = socket;
      const greeted = this.request({ case: "greet", value: {} });
      greeted.catch(() => socket.destroy());
      void this.#probe(ended.signal);
      const reader = new FrameReader();
      for await (const chunk of socket) {
        for (const message of reader.take(chunk)) {
          this.#onFrame(fromBinary(KeeperFrameSchema, message));
          onConnected();
        }
      }
    } finally {
      ended.abort();
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      if (this.#socket === socket) this.#socket = null;
      for (const { reject } of this.#waiting.values()) reject(new KeeperError("the keeper of this machine has ended"));
      this.#waiting.clear();
      const isGone = this.#hasGreeted && !signal.aborted;
      this.#hasGreeted = false;
      if (isGone) this.#listener.onGone();
    }
  }

  /** Ask again and again, each time when the last question was answered. Its answer counts as any frame does. */
  async #probe(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(PROBE_EVERY_MS, signal).catch(() => {});
      // One that does not answer in time has its connection ended.
      if (!signal.aborted) await this.request({ case: "probe", value: {} }).catch(() => {});
    }
  }

  #onFrame({ frame }: KeeperFrame): void {
    this.#heardAtMs = this.#options.clock.nowMs();
    switch (frame.case) {
      case "reply": {
        const { id, reply } = frame.value;
        if (reply.case === "greeting") this.#onGreeting(reply.value);
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        waiting?.resolve(frame.value);
        return;
      }
      case "changed":
        this.#listener.onChanged(frame.value);
        return;
      case "listed":
        this.#listener.onListed();
        return;
      case "greeting":
        this.#listener.onOffer(frame.value);
        return;
      case undefined:
        return;
    }
  }

  /** One of an earlier version, or with other settings, makes way for the one that takes its place; once. */
  #onGreeting(greeting: Greeting): void {
    const { access, log } = this.#options;
    const { version, settingsDigest, pid } = greeting;
    const isExpected = version === access.expected.version && settingsDigest === access.expected.settingsDigest;
    if (!isExpected && !this.#hasRetired) {
      this.#hasRetired = true;
      this.#startedAtMs = Number.NEGATIVE_INFINITY;
      log.info({ keeper_pid: pid, keeper_version: version }, "keeper has other settings, it is replaced");
      this.request({ case: "retire", value: {} }).catch(() => {});
      return;
    }
    log.info({ keeper_pid: pid, keeper_version: version, executors: greeting.executors }, "keeper found");
    this.#hasGreeted = true;
    this.#listener.onGreeting(greeting);
  }

  /** False when none was started: none can be, or one was a short while ago. */
  async #startOne(): Promise<boolean> {
    const { access, clock, log } = this.#options;
    const nowMs = clock.nowMs();
    if (access.start === null || nowMs - this.#startedAtMs < START_EVERY_MS) return false;
    this.#startedAtMs = nowMs;
    try {
      await access.start();
      return true;
    } catch (error) {
      log.error({ err: error }, "keeper cannot be started");
      return false;
    }
  }
}
