import { LRUCache } from "lru-cache";
import type { WorkRecord } from "./work-record.ts";

/** Bytes of specs that are kept. */
const MOST_BYTES = 16 * 1_024 * 1_024;
const SPECS_A_READ = 50;
const NO_SPEC = new Uint8Array();

/** Specs by their digests, read from the record where they are not kept: many nodes ask for the same few. */
export class SpecCache {
  readonly #record: Pick<WorkRecord, "readSpecs">;
  readonly #specs = new LRUCache<string, Uint8Array>({ maxSize: MOST_BYTES, sizeCalculation: (it) => it.byteLength });

  constructor(record: Pick<WorkRecord, "readSpecs">) {
    this.#record = record;
  }

  /**
   * The spec of a digest; empty when there is none.
   *
   * @param likely digests that are asked for next: they are read along.
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
