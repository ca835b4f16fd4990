import type { AnonymousAccounts } from "../limits/anonymous-log.ts";
import type { Connection } from "./connection.ts";
import { FairReading } from "./fair-reading.ts";
import { WaitingRoom } from "./waiting-room.ts";

/**
 * How much work the connections of one address can cause in one iteration of the event loop before they must take turns
 * to be read, in tenths of a call.
 */
const MUCH_BROUGHT = 500;
const A_CALL = 10;

export interface AddressKeeperOptions {
  /** The costs per address, which all ports share. Null turns off accounting and waiting. */
  readonly accounts: AnonymousAccounts | null;
  /** The monotonic time in milliseconds. */
  nowMs(): number;
  /** List the unauthenticated connections of an address. */
  anonymousOf(address: string): Iterable<Connection>;
}

/**
 * The limits of a port that apply to a whole address, because a client that floods can reconnect and start over. An
 * address is charged for the work that it wastes. While it is over budget, its new connections wait. After a burst of
 * calls, its connections take turns to be read. See docs/decisions/0067.
 */
export class AddressKeeper {
  readonly #options: AddressKeeperOptions;
  readonly #waiting: WaitingRoom<Connection>;
  readonly #reading = new FairReading<Connection>();
  /** The work that anonymous clients have caused in this iteration of the event loop, keyed by address. */
  readonly #brought = new Map<string, number>();
  /** Addresses whose connections have been held back in this iteration. */
  readonly #held = new Set<string>();

  constructor(options: AddressKeeperOptions) {
    this.#options = options;
    const { nowMs } = options;
    this.#waiting = new WaitingRoom({ msUntilFree: (it) => this.#msUntilPaid(it), nowMs });
  }

  /** How many connections wait to be served. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The name of the group of addresses that a host belongs to. All limits treat the group as one address. */
  groupOf(host: string): string {
    return this.#options.accounts?.groupOf(host) ?? host;
  }

  /** Whether a host is exempt from charges. */
  isSpared(host: string): boolean {
    return this.#options.accounts?.isSpared(host) ?? true;
  }

  /**
   * Serve a new connection by calling `serve`, now or later, but not after refuseNewcomers(). Returns false if too many
   * connections of its address wait.
   */
  enter(connection: Connection, serve: () => void): boolean {
    return this.#waiting.enter(connection, serve);
  }

  /** Forget a closed connection. */
  leave(connection: Connection): void {
    this.#waiting.leave(connection);
    this.#reading.leave(connection);
  }

  /** Stop serving new connections. Returns the connections that wait. */
  refuseNewcomers(): readonly Connection[] {
    return this.#waiting.close();
  }

  /**
   * Record the start of a session. If the connection's address is over budget, the connection takes turns to be read
   * from its first bytes on.
   */
  sessionBegan(connection: Connection): void {
    const { address, isTrusted } = connection;
    // Hold back only this connection: scanning all connections for each new session would make flooding easier.
    if (!isTrusted && this.#msUntilPaid(address) > 0) this.#reading.hold(address, [connection]);
  }

  /**
   * Record the start of a call by an anonymous client. Returns whether the call is a nuisance because its address is
   * over budget.
   */
  callBegan(connection: Connection): boolean {
    const { address, isTrusted } = connection;
    this.brought(connection, A_CALL);
    return !isTrusted && this.#msUntilPaid(address) > 0;
  }

  /**
   * Record work that a connection causes in this iteration of the event loop, in tenths of a call. Above the limit,
   * other connections of the same address are not read in this iteration.
   */
  brought({ address }: Connection, work: number): void {
    if (this.#brought.size === 0) setImmediate(() => this.#brought.clear());
    const before = this.#brought.get(address) ?? 0;
    this.#brought.set(address, before + work);
    if (before < MUCH_BROUGHT && before + work >= MUCH_BROUGHT) this.readInTurns(address);
  }

  /**
   * Make the anonymous connections of an address take turns to be read, because together they cause much work. This
   * happens at most once per iteration.
   */
  readInTurns(address: string): void {
    if (this.#held.has(address)) return;
    if (this.#held.size === 0) setImmediate(() => this.#held.clear());
    this.#held.add(address);
    this.#reading.hold(address, this.#servedOf(address));
  }

  /**
   * Charge the cost of a connection to its address, unless its caller is known.
   *
   * @param mostOwed the maximum debt for this cost, if it is lower than for other costs.
   */
  spend({ address, standing, isTrusted }: Connection, cost: number, mostOwed?: number): void {
    const { accounts, nowMs } = this.#options;
    if (cost > 0 && standing !== "known" && !isTrusted) accounts?.spend(address, cost, nowMs(), mostOwed);
  }

  *#servedOf(address: string): Iterable<Connection> {
    for (const connection of this.#options.anonymousOf(address)) {
      if (!connection.isWaiting) yield connection;
    }
  }

  #msUntilPaid(address: string): number {
    const { accounts, nowMs } = this.#options;
    return accounts?.msUntilPaid(address, nowMs()) ?? 0;
  }
}
