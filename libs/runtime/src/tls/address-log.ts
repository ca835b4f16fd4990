/** Remembers for whom a line was written, so that one client that tries again and again does not fill the log. Bounded: the oldest is forgotten. */
export class AddressLog {
  readonly #seen = new Set<string>();
  readonly #limit: number;

  constructor(limit = 1_000) {
    this.#limit = limit;
  }

  /** Whether this is the first time, as far as it is remembered. */
  isNew(address: string): boolean {
    if (this.#seen.has(address)) return false;
    const [oldest] = this.#seen;
    if (this.#seen.size >= this.#limit && oldest !== undefined) this.#seen.delete(oldest);
    this.#seen.add(address);
    return true;
  }
}
