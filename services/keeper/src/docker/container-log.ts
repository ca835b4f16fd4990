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

/** What a log is read with. */
export interface ContainerLogOptions {
  readonly engine: Pick<DockerEngine, "client">;
  readonly containerId: string;
  /** Whether it runs: the log of one that has ended is read, and not followed. */
  readonly isRunning: boolean;
  readonly stores: OutputStores;
  /** The execution's directory. */
  readonly directory: string;
  readonly log: Logger;
  /** Called when the engine sends nothing further: the container may have ended. */
  readonly onEnd: () => void;
}

/** An engine that ends a log while the container runs is asked again after this. */
const AGAIN_AFTER_MS = 1_000;

/** What follows a log is given this long to see the end by itself. */
const FOLLOW_LIMIT_MS = 2_000;

/**
 * What is followed is taken this late. Podman sees the end of a container some 250 ms after it, and from then on may
 * drop a line that no reader is waiting for: what came shortly before the end of a log is read again.
 */
const HOLD_MS = 500;
const MOST_HELD = 1_048_576;

const NS_PER_S = 1_000_000_000n;
const NS_PER_MS = 1_000_000n;

/** Reading the rest of the log of a container that has ended: 32 MiB at most. */
const REST_LIMIT_MS = 30_000;

/**
 * Moves what a container writes from the engine's log to the stores. It remembers how far it is by the times of the
 * entries and the bytes that the stores have, so that the next keeper goes on where this one was killed.
 */
export class ContainerLog implements OutputReader {
  readonly #options: ContainerLogOptions;
  readonly #marks: LogMarks;
  readonly #closing = new AbortController();
  /** Aborted where following takes too long to see the end. */
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

  /** Take what is left: the container has ended. Resolves when all is taken, or cannot be. */
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
        if (!hasFailed && this.#isFollowing) log.warn({ err: error }, "log of a container cannot be followed");
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
      this.#options.log.warn({ err: error }, "end of a container's log cannot be read");
    } finally {
      this.#isDone = true;
    }
  }

  /**
   * Read from where the stores end: what there is, or what comes as well, until the engine says no more. Of a container
   * that has ended nothing is followed: podman may then drop a line that is not taken from it at once.
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
      // A full disk costs output; a log that is not followed would cost the sight of the end.
      if (!this.#hasLost) this.#options.log.error({ err: error }, "output cannot be written, it is lost");
      this.#hasLost = true;
    }
  }

  async #saveMarks(): Promise<void> {
    try {
      await this.#marks.save();
    } catch (error) {
      this.#options.log.warn({ err: error }, "place in a container's log cannot be kept");
    }
  }
}
