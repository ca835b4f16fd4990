import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MachineClock } from "./execution/keeper-services.ts";

const FILE = "seen.json";
const WRITE_EVERY_MS = 1_000;

/**
 * When the agent last received something from the control plane. The time survives the keeper, but not a
 * reboot.
 */
export class SeenStamp {
  readonly #path: string;
  readonly #bootId: string;
  readonly #clock: MachineClock;
  #atMs: number;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, bootId: string, clock: MachineClock, atMs: number) {
    this.#path = path;
    this.#bootId = bootId;
    this.#clock = clock;
    this.#atMs = atMs;
  }

  /**
   * Read the time that an earlier keeper of this boot wrote. If there is none, assume that the agent has
   * just received something.
   */
  static async open(directory: string, bootId: string, clock: MachineClock): Promise<SeenStamp> {
    const path = join(directory, FILE);
    const text = await readFile(path, "utf8").catch(() => "");
    const nowMs = clock.nowMs();
    return new SeenStamp(path, bootId, clock, parseStamp(text, bootId, nowMs) ?? nowMs);
  }

  get atMs(): number {
    return this.#atMs;
  }

  /** Record that the agent has received something from the control plane just now. */
  renew(): void {
    this.#atMs = this.#clock.nowMs();
    if (this.#atMs - this.#writtenAtMs < WRITE_EVERY_MS) return;
    this.#writtenAtMs = this.#atMs;
    const text = JSON.stringify({ bootId: this.#bootId, atMs: this.#atMs });
    this.#writing = this.#writing.then(async () => {
      try {
        await writeFile(`${this.#path}.new`, text, { mode: 0o600 });
        await rename(`${this.#path}.new`, this.#path);
      } catch {
        // Ignore the error. The file keeps an older time, so if the keeper restarts now, executions stop
        // a little early.
      }
    });
  }

  /** Resolves when the current write is done. */
  close(): Promise<void> {
    return this.#writing;
  }
}

function parseStamp(text: string, bootId: string, nowMs: number): number | null {
  try {
    const { bootId: of, atMs } = JSON.parse(text);
    return of === bootId && typeof atMs === "number" && atMs <= nowMs ? atMs : null;
  } catch {
    return null;
  }
}
