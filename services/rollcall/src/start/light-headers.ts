/**
 * Headers as calls need them. Those of Node.js come with a whole client of HTTP, of which nothing else is used: it
 * takes longer to load than a call of the command line, and 3 MiB of an agent.
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

  /** By name; each cookie by itself, since a comma may be a part of it. */
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

/** Have this process use them. To be called before anything asks for those of Node.js. */
export function useLightHeaders(): void {
  globalThis.Headers = LightHeaders as unknown as typeof Headers;
}
