import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../state/write-atomically.ts";
import type { Probed } from "./gpus.ts";
import type { ProbedFact, UnknownFact } from "./machine-facts.ts";

/** The value to report of a probe, and why it is not the one of now. */
export interface Reported<T> {
  /** The last value that was known; undefined when none ever was. */
  readonly value: T | undefined;
  readonly unknown: UnknownFact | null;
}

interface Entry {
  readonly value: unknown;
  readonly atMs: number;
}

/** A file of another version is not read: the next probe that succeeds writes it again. */
const VERSION = 1;
const FILE = "last-known.json";
/** A value that stays the same is written again so rarely, to keep its time. */
const WRITE_AGAIN_MS = 3_600_000;

/**
 * Keeps the last value of each probe, on the disk too: a probe that fails after a restart must not make the machine's
 * hardware disappear.
 */
export class LastKnown {
  readonly #path: string;
  readonly #wallMs: () => number;
  #entries: Promise<Map<string, Entry>> | null = null;
  readonly #written = new Map<string, Entry>();

  constructor(stateDirectory: string, wallMs: () => number) {
    this.#path = join(stateDirectory, FILE);
    this.#wallMs = wallMs;
  }

  /** Take what a probe found. `name` tells probes of one fact apart. Never rejects. */
  async take<T>(name: string, fact: ProbedFact, probed: Probed<T>): Promise<Reported<T>> {
    this.#entries ??= this.#load();
    const entries = await this.#entries;
    if (probed.kind === "known") {
      entries.set(name, { value: probed.value, atMs: this.#wallMs() });
      return { value: probed.value, unknown: null };
    }
    const last = entries.get(name);
    const unknown = { fact, reason: probed.reason, knownAtMs: last?.atMs ?? null };
    // Written by this class, in a directory that nobody else can write to.
    return { value: last?.value as T | undefined, unknown };
  }

  /** Write down what was taken, if it changed. Never rejects. */
  async save(): Promise<void> {
    const entries = await (this.#entries ?? this.#load());
    const isDue = [...entries].some(([name, { value, atMs }]) => {
      const written = this.#written.get(name);
      if (written === undefined || atMs - written.atMs >= WRITE_AGAIN_MS) return true;
      return JSON.stringify(written.value) !== JSON.stringify(value);
    });
    if (!isDue) return;
    try {
      await replaceFile(this.#path, `${JSON.stringify({ version: VERSION, probes: Object.fromEntries(entries) })}\n`);
      for (const [name, entry] of entries) this.#written.set(name, entry);
    } catch {
      // A disk that is full has a condition of its own. The values are kept in memory, and written by the next save.
    }
  }

  async #load(): Promise<Map<string, Entry>> {
    try {
      const { version, probes } = JSON.parse(await readFile(this.#path, "utf8")) as {
        readonly version: number;
        readonly probes: Readonly<Record<string, Entry>>;
      };
      if (version !== VERSION) return new Map();
      const entries = Object.entries(probes).filter(([, { atMs }]) => Number.isFinite(atMs));
      for (const [name, entry] of entries) this.#written.set(name, entry);
      return new Map(entries);
    } catch {
      // There is none yet, or it is broken: nothing is known from before then.
      return new Map();
    }
  }
}
