/** A place in a page for the samples of one node. */
export interface SamplePlace {
  /** The memory of several nodes; this one's begins at `at`. */
  readonly words: Uint16Array;
  readonly at: number;
}

/** A page of memory holds as many places as fit. */
const PAGE_WORDS = 32 * 1024;

/**
 * Memory for the samples of many nodes, in pages that several share: an array of its own would cost each node a sixth
 * more, and leave holes between them. Places of one size are handed out again when they are given back; pages stay.
 */
export class SamplePages {
  readonly #free = new Map<number, SamplePlace[]>();

  /** Take a place of so many words. What is in it is whatever was left there. */
  take(sizeWords: number): SamplePlace {
    const free = this.#freeOf(sizeWords);
    if (free.length === 0) {
      const places = Math.max(1, Math.floor(PAGE_WORDS / sizeWords));
      const words = new Uint16Array(places * sizeWords);
      for (let place = places - 1; place >= 0; place--) free.push({ words, at: place * sizeWords });
    }
    return free.pop() as SamplePlace;
  }

  /** Give a place back that is not used any more. */
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
