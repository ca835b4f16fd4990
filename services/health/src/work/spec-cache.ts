import { LRUCache } from "lru-cache";
import type { WorkStore } from "./work-store.ts";

/** Maximum bytes of cached specs. */
const MOST_BYTES = 16 * 1_024 * 1_024;
const SPECS_A_READ = 50;
const NO_SPEC = new Uint8Array();

/** Caches specs by digest, because many nodes ask for the same few. Reads missing ones from the store. */
export class SpecCache {
  readonly #record: Pick<WorkStore, "readSpecs">;
  readonly #specs = new LRUCache<string, Uint8Array>({ maxSize: MOST_BYTES, sizeCalculation: (it) => it.byteLength });

  constructor(record: Pick<WorkStore, "readSpecs">) {
    this.#record = record;
  }

  /**
   * The spec for a digest; empty when there is none.
   *
   * @param likely digests that will probably be needed next; they are read in the same query.
   */
  async read(digest: Uint8Array, likely: readonly Uint8Array[]): Promise<Uint8Array> {
    const known = this.#specs.get(keyOf(digest));
    if (known !== undefined) return known;
    const missing = [digest, ...likely.filter((it) => it !== digest && !this.#specs.has(keyOf(it)))];
    const read = await this.#record.readSpecs(missing.slice(0, SPECS_A_READ));
    for (const { digest: of, spec } of read) this.#specs.set(keyOf(of), spec);
    return read.find((it) => keyOf(it.digest) === keyOf(digest))?.spec ?? NO_SPEC;
  }
}

function keyOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString("base64");
}
