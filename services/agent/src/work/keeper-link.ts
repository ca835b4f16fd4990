import { connect, type Socket } from "node:net";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type Greeting,
  type KeeperFrame,
  KeeperFrameSchema,
  type KeeperReply,
  KeeperRequestSchema,
  type LiveExecution,
  type KeeperRequestSchema as RequestSchema,
} from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import { FrameReader, frameMessage } from "@rollcall/wire";

/** How to reach the keeper of this machine, and how to start one if none responds. */
export interface KeeperAccess {
  readonly socketPath: string;
  /** Start a keeper; null if a service manager does that. */
  readonly start: (() => Promise<void>) | null;
  /** Whether the machine should offer executors. If not, a missing keeper is not a problem. */
  readonly isNeeded: boolean;
  /** The version and settings that the keeper should report. Any other keeper is asked to retire. */
  readonly expected: { readonly version: string; readonly settingsDigest: string };
}

/** Sends requests to a keeper. */
export interface KeeperPort {
  /** When the keeper last responded, by the monotonic clock; null before the first time. */
  readonly heardAtMs: number | null;
  /** Stay connected until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Rejects with KeeperRefused if the keeper refuses, and with another error if it cannot be reached. */
  request(request: KeeperRequestInit): Promise<KeeperReply>;
}

/** Receives what a keeper reports. */
export interface KeeperListener {
  /** Called when a keeper has sent its greeting. Its executions follow. */
  onGreeting(greeting: Greeting): void;
  /** Called when the keeper's description of itself has changed. */
  onOffer(greeting: Greeting): void;
  onChanged(kept: LiveExecution): void;
  /** Called when the keeper has listed all its executions since the greeting. */
  onListed(): void;
  /** Called when the keeper that sent the greeting no longer responds. */
  onGone(): void;
}

export type KeeperRequestInit = NonNullable<MessageInitShape<typeof RequestSchema>["request"]>;

export interface KeeperLinkOptions {
  readonly access: KeeperAccess;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

const BASE_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
const ANSWER_LIMIT_MS = 30_000;

/** Time between two probes of the keeper. */
const PROBE_EVERY_MS = 5_000;

/** Maximum number of unanswered requests. */
const MOST_UNANSWERED = 5_000;

/** The minimum time between two starts of a keeper. Frequent restarts would hide its problem. */
const START_EVERY_MS = 10_000;

/** The keeper refused a request, or cannot be reached. */
class KeeperError extends Error {
  override readonly name: string = "KeeperError";
}

/** The keeper refused a request, or failed to handle it. */
export class KeeperRefused extends KeeperError {
  override readonly name = "KeeperRefused";
  /** Whether the keeper failed, as opposed to refusing. */
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
        // Log only at debug level before the first start, because no keeper can be running yet.
        const level = this.#startedAtMs === Number.NEGATIVE_INFINITY ? "debug" : "warn";
        if (failures === 0) log[level]({ err: error }, "keeper cannot be reached");
        // Retry soon after a start, because a keeper that was just started responds soon.
        failures = (await this.#startOne()) ? 1 : failures + 1;
      }
      const pauseMs = fullJitter({ attempt: failures, baseMs: BASE_PAUSE_MS, maxMs: MAX_PAUSE_MS, random01: random() });
      await clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  async request(request: KeeperRequestInit): Promise<KeeperReply> {
    const socket = this.#socket;
    if (socket === null) throw new KeeperError("the keeper of this machine does not answer");
    if (this.#waiting.size >= MOST_UNANSWERED)
      throw new KeeperError("the keeper of this machine has too many unanswered requests");
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
      // Close the connection of a keeper that does not respond. The next connection starts with the complete list.
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
      for (const { reject } of this.#waiting.values())
        reject(new KeeperError("the connection to this machine's keeper was lost"));
      this.#waiting.clear();
      const isGone = this.#hasGreeted && !signal.aborted;
      this.#hasGreeted = false;
      if (isGone) this.#listener.onGone();
    }
  }

  /** Probe repeatedly, each time after the previous response. Any frame, including the response, counts as contact. */
  async #probe(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(PROBE_EVERY_MS, signal).catch(() => {});
      // If the keeper does not respond in time, request() closes the connection.
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

  /**
   * Ask a keeper with another version or other settings to retire, so that a new keeper can replace it. Asks only once.
   */
  #onGreeting(greeting: Greeting): void {
    const { access, log } = this.#options;
    const { version, settingsDigest, pid } = greeting;
    const isExpected = version === access.expected.version && settingsDigest === access.expected.settingsDigest;
    if (!isExpected && !this.#hasRetired) {
      this.#hasRetired = true;
      this.#startedAtMs = Number.NEGATIVE_INFINITY;
      log.info(
        { keeper_pid: pid, keeper_version: version },
        "keeper has a different version or different settings, replacing it",
      );
      this.request({ case: "retire", value: {} }).catch(() => {});
      return;
    }
    log.info({ keeper_pid: pid, keeper_version: version, executors: greeting.executors }, "keeper found");
    this.#hasGreeted = true;
    this.#listener.onGreeting(greeting);
  }

  /**
   * Start a keeper. Returns false if none was started, because starting is not possible or has failed, or a keeper was
   * started recently.
   */
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
