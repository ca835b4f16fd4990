/** A block of memory in a page, for the samples of one node. */
export interface SamplePlace {
  /** The memory page, which several nodes share. This node's block starts at `at`. */
  readonly words: Uint16Array;
  readonly at: number;
}

/** Size of a page in words. */
const PAGE_WORDS = 32 * 1024;

/**
 * Memory for the samples of many nodes, in shared pages: an array for each node would take a sixth more and fragment
 * memory. Freed blocks are reused for the same size; pages are never freed.
 */
export class SamplePages {
  readonly #free = new Map<number, SamplePlace[]>();

  /** Allocate a block of this many words. Its content is undefined. */
  take(sizeWords: number): SamplePlace {
    const free = this.#freeOf(sizeWords);
    if (free.length === 0) {
      const places = Math.max(1, Math.floor(PAGE_WORDS / sizeWords));
      const words = new Uint16Array(places * sizeWords);
      for (let place = places - 1; place >= 0; place--) free.push({ words, at: place * sizeWords });
    }
    return free.pop() as SamplePlace;
  }

  /** Free a block. */
  giveBack(place: SamplePlace, sizeWords: number): void {
    this.#freeOf(sizeWords).push(place);
  }

  #freeOf(sizeWords: number): SamplePlace[] {
    let free = this.#free.get(sizeWords);
    if (free === undefined) {
      free = [];
      this.#free.set(sizeWords, free);
    }
    return free;
  }
}
