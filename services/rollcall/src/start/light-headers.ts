/**
 * A small implementation of Headers for calls. Node.js' implementation loads a whole HTTP client that is not used
 * otherwise. Loading it takes longer than a call of the command line, and needs 3 MiB in an agent.
 */
export class LightHeaders implements Iterable<[string, string]> {
  readonly #values = new Map<string, string[]>();

  constructor(given: ConstructorParameters<typeof Headers>[0] = {}) {
    const pairs = Symbol.iterator in given ? given : Object.entries(given);
    for (const [name, value] of pairs) this.append(name, String(value));
  }

  append(name: string, value: string): void {
    const values = this.#values.get(name.toLowerCase());
    if (values === undefined) this.set(name, value);
    else values.push(String(value).trim());
  }

  set(name: string, value: string): void {
    this.#values.set(name.toLowerCase(), [String(value).trim()]);
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase())?.join(", ") ?? null;
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase());
  }

  delete(name: string): void {
    this.#values.delete(name.toLowerCase());
  }

  getSetCookie(): string[] {
    return [...(this.#values.get("set-cookie") ?? [])];
  }

  forEach(told: (value: string, name: string, headers: LightHeaders) => void): void {
    for (const [name, value] of this) told(value, name, this);
  }

  /** The headers sorted by name. Each cookie is a separate entry, because a cookie can contain a comma. */
  *entries(): IterableIterator<[string, string]> {
    for (const name of [...this.#values.keys()].sort()) {
      const values = this.#values.get(name) ?? [];
      for (const value of name === "set-cookie" ? values : [values.join(", ")]) yield [name, value];
    }
  }

  *keys(): IterableIterator<string> {
    for (const [name] of this) yield name;
  }

  *values(): IterableIterator<string> {
    for (const [, value] of this) yield value;
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.entries();
  }
}

/** Replace the global Headers of this process. Must be called before anything uses those of Node.js. */
export function useLightHeaders(): void {
  globalThis.Headers = LightHeaders as unknown as typeof Headers;
}
