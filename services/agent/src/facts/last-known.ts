import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "@rollcall/process";
import type { Probed } from "./gpus.ts";
import type { ProbedFact, UnknownFact } from "./machine-facts.ts";

/** The value of a probe for the report, and why that value is not current. */
export interface Reported<T> {
  /** The last known value; undefined if none was ever known. */
  readonly value: T | undefined;
  readonly unknown: UnknownFact | null;
}

interface Entry {
  readonly value: unknown;
  readonly atMs: number;
}

/**
 * Version of the file's format. A file of a different version is ignored, and the next successful probe replaces it.
 */
const VERSION = 1;
const FILE = "last-known.json";
/** Time after which an unchanged value is written again, to keep its time current. */
const WRITE_AGAIN_MS = 3_600_000;

/**
 * Keeps the last value of each probe in memory and on disk, so that the machine's hardware does not disappear from
 * the report when a probe fails after a restart.
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

  /**
   * Record the result of a probe, and return what to report. `name` distinguishes the probes of one fact. Never
   * rejects.
   */
  async take<T>(name: string, fact: ProbedFact, probed: Probed<T>): Promise<Reported<T>> {
    this.#entries ??= this.#load();
    const entries = await this.#entries;
    if (probed.kind === "known") {
      entries.set(name, { value: probed.value, atMs: this.#wallMs() });
      return { value: probed.value, unknown: null };
    }
    const last = entries.get(name);
    const unknown = { fact, reason: probed.reason, knownAtMs: last?.atMs ?? null };
    // The cast is safe, because only this class writes the file, in a directory that no other user can write to.
    return { value: last?.value as T | undefined, unknown };
  }

  /** Write the values to disk if they have changed. Never rejects. */
  async save(): Promise<void> {
    const entries = await (this.#entries ?? this.#load());
    const isDue = [...entries].some(([name, { value, atMs }]) => {
      const written = this.#written.get(name);
      if (written === undefined || atMs - written.atMs >= WRITE_AGAIN_MS) return true;
      return JSON.stringify(written.value) !== JSON.stringify(value);
    });
    if (!isDue) return;
    try {
      await replaceFile(
        this.#path,
        `${JSON.stringify({ version: VERSION, probes: Object.fromEntries(entries) })}\n`,
        0o600,
      );
      for (const [name, entry] of entries) this.#written.set(name, entry);
    } catch {
      // Ignore the error, because a full disk is reported as a separate condition. The values stay in memory, and the
      // next save writes them.
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
      // The file is missing or damaged, so no earlier values are known.
      return new Map();
    }
  }
}
