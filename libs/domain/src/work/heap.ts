/** A priority queue. The first item is the smallest. */
export class Heap<Item> {
  readonly #items: Item[] = [];
  readonly #isBefore: (one: Item, other: Item) => boolean;

  constructor(isBefore: (one: Item, other: Item) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    const items = this.#items;
    let place = items.length;
    items.push(item);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = items[parent];
      if (above === undefined || !this.#isBefore(item, above)) break;
      items[place] = above;
      place = parent;
    }
    items[place] = item;
  }

  pop(): Item | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let place = 0;
    for (;;) {
      const below = this.#lesserChild(place);
      const child = items[below];
      if (child === undefined || !this.#isBefore(child, last)) break;
      items[place] = child;
      place = below;
    }
    items[place] = last;
    return first;
  }

  clear(): void {
    this.#items.length = 0;
  }

  #lesserChild(place: number): number {
    const left = 2 * place + 1;
    const one = this.#items[left];
    const other = this.#items[left + 1];
    return one !== undefined && other !== undefined && this.#isBefore(other, one) ? left + 1 : left;
  }
}
