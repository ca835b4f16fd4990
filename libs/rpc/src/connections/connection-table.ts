/**
 * How far a connection has come: `fresh` has not said yet what it speaks, `idle` has nothing under way, `busy` has, and
 * `known` has shown who it is. The first three are strangers.
 */
export type Standing = "fresh" | "idle" | "busy" | "known";

type StrangerStanding = Exclude<Standing, "known">;

export interface ConnectionLimits {
  /** Most connections at a time. */
  readonly maxConnections: number;
  /** Most strangers of one address at a time. Infinity for a port on which no caller becomes known. */
  readonly maxStrangersOfAddress: number;
  /** How long a connection may be fresh. */
  readonly freshMs: number;
  /** How long a connection may be idle. */
  readonly idleMs: number;
  /** How long a busy stranger is spared when room is needed; Infinity when it always is. */
  readonly spareBusyMs: number;
}

/** What holds a connection back: all of the port, or those of its address. */
export type Crowd = "port" | "address";

/**
 * What to do with a new connection. When `shed` is not null, that one has to be ended for it; it is in the table no
 * more.
 */
export type Admission<E> =
  | { readonly ok: true; readonly shed: E | null }
  | { readonly ok: false; readonly crowd: Crowd };

/** What a ConnectionTable knows of a connection. Only the table changes it. */
export abstract class TableEntry {
  readonly address: string;
  standing: Standing = "fresh";
  /** Since when it has this standing, in monotonic milliseconds. */
  sinceMs = 0;
  isListed = false;

  /** @param address what counts as one address, see ConnectionLimits.maxStrangersOfAddress. */
  constructor(address: string) {
    this.address = address;
  }
}

/** Strangers in the order in which they came by their standing: the longest first. */
class Strangers<E extends TableEntry> {
  readonly fresh = new Set<E>();
  readonly idle = new Set<E>();
  readonly busy = new Set<E>();

  get size(): number {
    return this.fresh.size + this.idle.size + this.busy.size;
  }

  /**
   * Who is ended first when room is needed: the one without anything under way for the longest, then one that is busy
   * for too long.
   */
  spareable(nowMs: number, spareBusyMs: number): E | null {
    const [fresh] = this.fresh;
    const [idle] = this.idle;
    if (fresh !== undefined && idle !== undefined) return fresh.sinceMs < idle.sinceMs ? fresh : idle;
    if (fresh !== undefined) return fresh;
    if (idle !== undefined) return idle;
    const [busy] = this.busy;
    return busy !== undefined && nowMs - busy.sinceMs >= spareBusyMs ? busy : null;
  }
}

/**
 * The connections of one port: who is let in, who has to go for it, and whose time is over. A newcomer is let in at a
 * limit as long as there is one to shed for it, so that connections that do nothing lock no one out. Known connections
 * cost only their entry.
 */
export class ConnectionTable<E extends TableEntry> {
  readonly #limits: ConnectionLimits;
  readonly #strangers = new Strangers<E>();
  readonly #byAddress = new Map<string, Strangers<E>>();
  #size = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** How many connections there are. */
  get size(): number {
    return this.#size;
  }

  /** How many of them are not known. */
  get strangers(): number {
    return this.#strangers.size;
  }

  /** Let a new connection in, or not. */
  admit(entry: E, nowMs: number): Admission<E> {
    const { maxConnections, maxStrangersOfAddress, spareBusyMs } = this.#limits;
    const siblings = this.#byAddress.get(entry.address);
    let shed: E | null = null;
    if (siblings !== undefined && siblings.size >= maxStrangersOfAddress) {
      shed = siblings.spareable(nowMs, spareBusyMs);
      if (shed === null) return { ok: false, crowd: "address" };
    } else if (this.#size >= maxConnections) {
      shed = this.#strangers.spareable(nowMs, spareBusyMs);
      if (shed === null) return { ok: false, crowd: "port" };
    }
    if (shed !== null) this.remove(shed);
    this.#size += 1;
    entry.isListed = true;
    entry.sinceMs = nowMs;
    this.#enlist(entry, "fresh");
    return { ok: true, shed };
  }

  /** Note how far a connection has come. Nothing happens to one that was removed. */
  move(entry: E, standing: Standing, nowMs: number): void {
    if (!entry.isListed || entry.standing === standing) return;
    this.#unlist(entry);
    entry.standing = standing;
    entry.sinceMs = nowMs;
    if (standing !== "known") this.#enlist(entry, standing);
  }

  /** Forget a connection. */
  remove(entry: E): void {
    if (!entry.isListed) return;
    this.#unlist(entry);
    entry.isListed = false;
    this.#size -= 1;
  }

  /** The strangers of an address. */
  *strangersOf(address: string): Iterable<E> {
    const siblings = this.#byAddress.get(address);
    if (siblings === undefined) return;
    yield* siblings.fresh;
    yield* siblings.idle;
    yield* siblings.busy;
  }

  /**
   * Those that have been fresh or idle for too long, the longest first, `most` of each at most. They stay in the table.
   */
  overdue(nowMs: number, most: number): readonly E[] {
    const { freshMs, idleMs } = this.#limits;
    return [
      ...longest(this.#strangers.fresh, nowMs - freshMs, most),
      ...longest(this.#strangers.idle, nowMs - idleMs, most),
    ];
  }

  /**
   * Those without anything under way, the longest first, `most` of each standing at most: who goes when descriptors
   * have run out.
   */
  spareable(most: number): readonly E[] {
    const { fresh, idle } = this.#strangers;
    return [...longest(fresh, Number.POSITIVE_INFINITY, most), ...longest(idle, Number.POSITIVE_INFINITY, most)];
  }

  #enlist(entry: E, standing: StrangerStanding): void {
    let siblings = this.#byAddress.get(entry.address);
    if (siblings === undefined) {
      siblings = new Strangers();
      this.#byAddress.set(entry.address, siblings);
    }
    siblings[standing].add(entry);
    this.#strangers[standing].add(entry);
  }

  #unlist(entry: E): void {
    if (entry.standing === "known") return;
    this.#strangers[entry.standing].delete(entry);
    const siblings = this.#byAddress.get(entry.address);
    siblings?.[entry.standing].delete(entry);
    if (siblings?.size === 0) this.#byAddress.delete(entry.address);
  }
}

function longest<E extends TableEntry>(entries: Iterable<E>, sinceMs: number, most: number): E[] {
  const found: E[] = [];
  for (const entry of entries) {
    if (found.length >= most || entry.sinceMs > sinceMs) break;
    found.push(entry);
  }
  return found;
}
