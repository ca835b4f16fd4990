import { type Clock, type Logger, Loop, type Task } from "@rollcall/process";
import type { CgroupHierarchy } from "./cgroup-hierarchy.ts";

export interface CgroupWatchOptions {
  /** Find where cgroups can be created; null if they cannot. */
  readonly open: () => Promise<CgroupHierarchy | null>;
  readonly clock: Clock;
  readonly log: Logger;
}

const SCAN_EVERY_MS = 10_000;

/**
 * Number of failed attempts in a row after which a limit counts as gone. A single attempt can fail, for example
 * because the process has no descriptors left.
 */
const ABSENT_TIMES = 3;

/**
 * Keeps checking where cgroups can be created, because a mount or a delegation can appear or disappear while
 * the keeper runs.
 */
export class CgroupWatch {
  readonly task: Task;
  readonly #options: CgroupWatchOptions;
  readonly #listeners = new Set<() => void>();
  #current: CgroupHierarchy | null;
  #absent = 0;

  private constructor(options: CgroupWatchOptions, current: CgroupHierarchy | null) {
    this.#options = options;
    this.#current = current;
    const { clock } = options;
    this.task = new Loop({ name: "find-cgroups", clock, everyMs: SCAN_EVERY_MS, turn: () => this.#look() });
  }

  static async open(options: CgroupWatchOptions): Promise<CgroupWatch> {
    return new CgroupWatch(options, await options.open());
  }

  /** Where to create the cgroups of new executions; null if they get none. */
  get current(): CgroupHierarchy | null {
    return this.#current;
  }

  /** Subscribe to changes. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async #look(): Promise<void> {
    const { open, log } = this.#options;
    const before = this.#current;
    const found = await open();
    const isLess = before !== null && (found === null || found.limits.length < before.limits.length);
    this.#absent = isLess ? this.#absent + 1 : 0;
    if (isLess && this.#absent < ABSENT_TIMES) return;
    this.#absent = 0;
    if (JSON.stringify(found) === JSON.stringify(before)) return;
    this.#current = found;
    const limits = found?.limits ?? [];
    if (isLess) log.error({ limits }, "cgroups have been lost; executions start with fewer limits");
    else log.info({ limits }, "cgroups are available");
    for (const listener of this.#listeners) listener();
  }
}
