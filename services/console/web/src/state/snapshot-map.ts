/**
 * The items of a stream, each with a key. Each time the stream is opened, it starts with a snapshot. Earlier items
 * stay until the new snapshot is complete; then the items that are not in the snapshot are removed. Beyond `most`
 * items, the oldest are dropped.
 */
export class SnapshotMap<T> {
  readonly #most: number;
  #shown: ReadonlyMap<string, T> = new Map();
  #coming: Map<string, T> | null = new Map();

  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  /** Start a new snapshot. */
  restart(): void {
    this.#coming = new Map();
  }

  /** Add items; `isDone` ends the snapshot. Returns all items to show. */
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

  /** Remove items. Returns all items to show. */
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
