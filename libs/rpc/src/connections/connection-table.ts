/**
 * The state of a connection: `fresh` has not shown its protocol yet, `idle` has no calls in progress, `busy` has calls
 * in progress, and `known` has an identified caller. The first three are anonymous.
 */
export type Standing = "fresh" | "idle" | "busy" | "known";

type UnknownStanding = Exclude<Standing, "known">;

export interface ConnectionLimits {
  /** Limit of connections. */
  readonly maxConnections: number;
  /** Maximum number of anonymous connections per address. Infinity for a port where callers are never identified. */
  readonly maxAnonymousOfAddress: number;
  /** How long a connection can be fresh. */
  readonly freshMs: number;
  /** How long a connection can be idle. */
  readonly idleMs: number;
  /**
   * How long an anonymous connection must be busy before it can be closed to make room, in milliseconds. Infinity means
   * never.
   */
  readonly spareBusyMs: number;
}

/** Which limit a connection exceeds: the port's, or its address's. */
export type Crowd = "port" | "address";

/**
 * What to do with a new connection. If `shed` is not null, the table has removed that connection to make room, and the
 * caller must close it.
 */
export type Admission<E> =
  | { readonly ok: true; readonly shed: E | null }
  | { readonly ok: false; readonly crowd: Crowd };

/** What the table stores about a connection. Only the table changes it. */
export abstract class TableEntry {
  readonly address: string;
  standing: Standing = "fresh";
  /** When the connection got its current standing, in monotonic milliseconds. */
  sinceMs = 0;
  isListed = false;

  /** @param address the group of addresses that counts as one address, see ConnectionLimits.maxAnonymousOfAddress. */
  constructor(address: string) {
    this.address = address;
  }
}

/** Anonymous connections, grouped by standing. Connections that have had their standing longest come first. */
class AnonymousConnections<E extends TableEntry> {
  readonly fresh = new Set<E>();
  readonly idle = new Set<E>();
  readonly busy = new Set<E>();

  get size(): number {
    return this.fresh.size + this.idle.size + this.busy.size;
  }

  /**
   * Find the connection to close when room is needed. This is the connection that has been without calls for longest.
   * If all have calls, it is the one that has been busy for longest, provided that this is at least `spareBusyMs`.
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
 * The connections of one port. It decides which connections to admit, which to close to make room, and which have timed
 * out. At a limit, a new connection is admitted if another connection can be closed for it, so idle connections cannot
 * keep new ones out. Known connections are never closed for new ones; they count only towards the port's limit.
 */
export class ConnectionTable<E extends TableEntry> {
  readonly #limits: ConnectionLimits;
  readonly #anonymousClients = new AnonymousConnections<E>();
  readonly #byAddress = new Map<string, AnonymousConnections<E>>();
  #size = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** The number of connections. */
  get size(): number {
    return this.#size;
  }

  /** The number of anonymous connections. */
  get anonymousClients(): number {
    return this.#anonymousClients.size;
  }

  /** Admit or refuse a new connection. */
  admit(entry: E, nowMs: number): Admission<E> {
    const { maxConnections, maxAnonymousOfAddress, spareBusyMs } = this.#limits;
    const siblings = this.#byAddress.get(entry.address);
    let shed: E | null = null;
    if (siblings !== undefined && siblings.size >= maxAnonymousOfAddress) {
      shed = siblings.spareable(nowMs, spareBusyMs);
      if (shed === null) return { ok: false, crowd: "address" };
    } else if (this.#size >= maxConnections) {
      shed = this.#anonymousClients.spareable(nowMs, spareBusyMs);
      if (shed === null) return { ok: false, crowd: "port" };
    }
    if (shed !== null) this.remove(shed);
    this.#size += 1;
    entry.isListed = true;
    entry.sinceMs = nowMs;
    this.#enlist(entry, "fresh");
    return { ok: true, shed };
  }

  /** Record the new standing of a connection. No effect if the connection was removed. */
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

  /** List the anonymous connections of an address. */
  *anonymousOf(address: string): Iterable<E> {
    const siblings = this.#byAddress.get(address);
    if (siblings === undefined) return;
    yield* siblings.fresh;
    yield* siblings.idle;
    yield* siblings.busy;
  }

  /**
   * List connections that have been fresh or idle for too long, longest first, at most `most` of each. They stay in the
   * table.
   */
  overdue(nowMs: number, most: number): readonly E[] {
    const { freshMs, idleMs } = this.#limits;
    return [
      ...longest(this.#anonymousClients.fresh, nowMs - freshMs, most),
      ...longest(this.#anonymousClients.idle, nowMs - idleMs, most),
    ];
  }

  /**
   * List connections to close when file descriptors run out: those without calls, the longest idle first, at most
   * `most` of each standing.
   */
  spareable(most: number): readonly E[] {
    const { fresh, idle } = this.#anonymousClients;
    return [...longest(fresh, Number.POSITIVE_INFINITY, most), ...longest(idle, Number.POSITIVE_INFINITY, most)];
  }

  #enlist(entry: E, standing: UnknownStanding): void {
    let siblings = this.#byAddress.get(entry.address);
    if (siblings === undefined) {
      siblings = new AnonymousConnections();
      this.#byAddress.set(entry.address, siblings);
    }
    siblings[standing].add(entry);
    this.#anonymousClients[standing].add(entry);
  }

  #unlist(entry: E): void {
    if (entry.standing === "known") return;
    this.#anonymousClients[entry.standing].delete(entry);
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
