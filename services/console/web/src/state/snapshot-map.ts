/**
 * What a stream tells of, by key, when it begins with a snapshot each time it is opened. What was there before stays in
 * sight until the new snapshot is complete; what that did not name is gone then.
 */
export class SnapshotMap<T> {
  #shown: ReadonlyMap<string, T> = new Map();
  #coming: Map<string, T> | null = new Map();

  /** Begin with a snapshot again. */
  restart(): void {
    this.#coming = new Map();
  }

  /** Take what came; `isDone` ends the snapshot. Answers all that is to be shown. */
  apply(came: Iterable<readonly [string, T]>, isDone: boolean): ReadonlyMap<string, T> {
    const items = [...came];
    for (const [key, item] of items) this.#coming?.set(key, item);
    if (isDone && this.#coming !== null) {
      this.#shown = this.#coming;
      this.#coming = null;
    } else if (items.length > 0) {
      this.#shown = new Map([...this.#shown, ...items]);
    }
    return this.#shown;
  }
}
