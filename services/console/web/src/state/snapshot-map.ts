/**
 * What a stream tells of, by key, when it begins with a snapshot each time it is opened. What was there before stays in
 * sight until the new snapshot is complete; what that did not name is gone then. Beyond `most` items those that came
 * first are dropped.
 */
export class SnapshotMap<T> {
  readonly #most: number;
  #shown: ReadonlyMap<string, T> = new Map();
  #coming: Map<string, T> | null = new Map();

  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  /** Begin with a snapshot again. */
  restart(): void {
    this.#coming = new Map();
  }

  /** Take what came; `isDone` ends the snapshot. Answers all there is to show. */
  apply(came: Iterable<readonly [string, T]>, isDone: boolean): ReadonlyMap<string, T> {
    const items = [...came];
    for (const [key, item] of items) this.#coming?.set(key, item);
    if (this.#coming !== null) this.#bound(this.#coming);
    if (isDone && this.#coming !== null) {
      this.#shown = this.#coming;
      this.#coming = null;
    } else if (items.length > 0) {
      this.#shown = this.#bound(new Map([...this.#shown, ...items]));
    }
    return this.#shown;
  }

  /** Forget what is gone. Answers all there is to show. */
  remove(keys: readonly string[]): ReadonlyMap<string, T> {
    for (const key of keys) this.#coming?.delete(key);
    if (keys.some((key) => this.#shown.has(key))) {
      this.#shown = new Map([...this.#shown].filter(([key]) => !keys.includes(key)));
    }
    return this.#shown;
  }

  #bound(all: Map<string, T>): Map<string, T> {
    for (const key of all.keys()) {
      if (all.size <= this.#most) break;
      all.delete(key);
    }
    return all;
  }
}
