import { setTimeout as sleep } from "node:timers/promises";
import { type Logger, systemClock } from "@rollcall/process";
import type { OutputReader, OutputStores } from "../output/execution-output.ts";
import type { StreamName } from "../output/output-plan.ts";
import { type DockerEngine, openLog } from "./docker-engine.ts";
import { heldBack } from "./held-back.ts";
import { LogFrames } from "./log-frames.ts";
import { LogMarks } from "./log-marks.ts";
import { joinParts, type LogPart } from "./log-parts.ts";
import { type LogPlace, resumeLog, takeEntry } from "./log-place.ts";

/** How to read a container's log. */
export interface ContainerLogOptions {
  readonly engine: Pick<DockerEngine, "client">;
  readonly containerId: string;
  /** Whether the container runs. The log of an ended container is read but not followed. */
  readonly isRunning: boolean;
  readonly stores: OutputStores;
  /** The execution's directory. */
  readonly directory: string;
  readonly log: Logger;
  /** Called when the engine stops sending, because the container may have ended. */
  readonly onEnd: () => void;
}

/** How long to wait before requesting the log again when the engine ends it while the container runs. */
const AGAIN_AFTER_MS = 1_000;

/** How long to wait for the engine to end the log that is being followed. */
const FOLLOW_LIMIT_MS = 2_000;

/**
 * How long to hold back followed output, in milliseconds. Podman notices the end of a container about 250 ms late, and
 * after the end can drop a line that no reader is waiting for. Output from shortly before the end of a log is
 * therefore dropped and read again.
 */
const HOLD_MS = 500;
const MOST_HELD = 1_048_576;

const NS_PER_S = 1_000_000_000n;
const NS_PER_MS = 1_000_000n;

/** Time limit for reading the rest of an ended container's log, which has at most 32 MiB. */
const REST_LIMIT_MS = 30_000;

/**
 * Copies a container's output from the engine's log to the stores. Its position consists of the times of the entries
 * and the number of stored bytes, so that the next keeper continues where this one was killed.
 */
export class ContainerLog implements OutputReader {
  readonly #options: ContainerLogOptions;
  readonly #marks: LogMarks;
  readonly #closing = new AbortController();
  /** Aborted when the log that is being followed does not end in time. */
  readonly #following = new AbortController();
  readonly #running: Promise<void>;
  #finishing: Promise<void> | null = null;
  #isFollowing = true;
  #isDone = false;
  #hasLost = false;

  constructor(options: ContainerLogOptions) {
    this.#options = options;
    this.#marks = new LogMarks(options.directory);
    this.#running = options.isRunning ? this.#follow() : Promise.resolve();
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /**
   * Read the rest of the log after the container has ended. Resolves when all is stored, or when reading has failed.
   */
  finish(): Promise<void> {
    this.#finishing ??= this.#takeRest();
    return this.#finishing;
  }

  async close(): Promise<void> {
    this.#isFollowing = false;
    this.#closing.abort();
    await this.#running;
    await this.#finishing;
    await this.#saveMarks();
  }

  async #follow(): Promise<void> {
    const { log, onEnd } = this.#options;
    let hasFailed = false;
    while (this.#isFollowing) {
      try {
        await this.#read(this.#following.signal, true);
        hasFailed = false;
      } catch (error) {
        if (!hasFailed && this.#isFollowing) log.warn({ err: error }, "cannot follow the log of a container");
        hasFailed = true;
      }
      if (!this.#isFollowing) return;
      onEnd();
      await sleep(AGAIN_AFTER_MS, null, {
        signal: AbortSignal.any([this.#closing.signal, this.#following.signal]),
      }).catch(() => {});
    }
  }

  async #takeRest(): Promise<void> {
    this.#isFollowing = false;
    const late = setTimeout(() => this.#following.abort(), FOLLOW_LIMIT_MS);
    await this.#running;
    clearTimeout(late);
    try {
      if (!this.#closing.signal.aborted) await this.#read(AbortSignal.timeout(REST_LIMIT_MS), false);
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot read the rest of a container's log");
    } finally {
      this.#isDone = true;
    }
  }

  /**
   * Read what the stores do not have yet, until the engine stops sending. With `follow`, also read new output. The log
   * of an ended container is not followed, because podman can drop a line that is not read immediately.
   */
  async #read(limit: AbortSignal, follow: boolean): Promise<void> {
    const { engine, containerId, stores } = this.#options;
    const marks = await this.#marks.load();
    const places = {
      stdout: resumeLog(marks.stdout, stores.stdout.end),
      stderr: resumeLog(marks.stderr, stores.stderr.end),
    };
    const [stdoutS, stderrS] = [places.stdout, places.stderr].map(({ mark }) => Number(mark.atNs / NS_PER_S));
    const since = Math.min(stdoutS ?? 0, stderrS ?? 0);
    const signal = AbortSignal.any([limit, this.#closing.signal]);
    const query = { stdout: true, stderr: true, timestamps: true, follow, since };
    const stream = await openLog(await engine.client("endless"), { containerId, query, signal });
    const onAbort = (): void => void stream.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    const frames = new LogFrames();
    try {
      const pieces = follow ? heldBack(stream, { clock: systemClock, holdMs: HOLD_MS, mostBytes: MOST_HELD }) : stream;
      for await (const piece of pieces) await this.#take(frames, piece, places);
    } finally {
      signal.removeEventListener("abort", onAbort);
      stream.destroy();
      await this.#saveMarks();
    }
  }

  async #take(frames: LogFrames, chunk: Uint8Array, places: Record<StreamName, LogPlace>): Promise<void> {
    const parts: Record<StreamName, LogPart[]> = { stdout: [], stderr: [] };
    for (const { stream, atNs, data } of frames.take(chunk)) {
      const { place, from } = takeEntry(places[stream], atNs, data.length);
      places[stream] = place;
      if (from < data.length) parts[stream].push({ atMs: Number(atNs / NS_PER_MS), data: data.subarray(from) });
    }
    await this.#append("stdout", parts.stdout);
    await this.#append("stderr", parts.stderr);
    this.#marks.note({ stdout: places.stdout.mark, stderr: places.stderr.mark });
  }

  async #append(name: StreamName, parts: readonly LogPart[]): Promise<void> {
    try {
      for (const { atMs, data } of joinParts(parts)) await this.#options.stores[name].append(data, atMs);
    } catch (error) {
      // On a full disk, lose output but continue to follow the log. Otherwise the keeper would also miss the end of
      // the container.
      if (!this.#hasLost) this.#options.log.error({ err: error }, "cannot write output; it is lost");
      this.#hasLost = true;
    }
  }

  async #saveMarks(): Promise<void> {
    try {
      await this.#marks.save();
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot save the position in a container's log");
    }
  }
}
