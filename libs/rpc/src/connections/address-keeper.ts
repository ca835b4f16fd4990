import type { StrangerAccounts } from "../limits/stranger-log.ts";
import type { Connection } from "./connection.ts";
import { ReadingTurns } from "./reading-turns.ts";
import { WaitingRoom } from "./waiting-room.ts";

/** What connections of one address may bring in one turn of the event loop before they are read in turns: 50 calls. */
const MUCH_BROUGHT = 500;
const A_CALL = 10;

export interface AddressKeeperOptions {
  /** The costs of each address, shared by all ports. Null turns accounting and waiting off. */
  readonly accounts: StrangerAccounts | null;
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** The unauthenticated connections of an address. */
  strangersOf(address: string): Iterable<Connection>;
}

/**
 * The limits of a port that apply to an address as a whole, since a client that floods can reconnect and start over:
 * its wasted work is charged, its new connections wait while it is over budget, and its connections are read in turns
 * after a burst of calls. See docs/decisions/0032.
 */
export class AddressKeeper {
  readonly #options: AddressKeeperOptions;
  readonly #waiting: WaitingRoom<Connection>;
  readonly #reading = new ReadingTurns<Connection>();
  /** What strangers have brought in this turn of the event loop, by address. */
  readonly #brought = new Map<string, number>();
  /** Addresses whose connections were held back in this turn. */
  readonly #held = new Set<string>();

  constructor(options: AddressKeeperOptions) {
    this.#options = options;
    const { nowMs } = options;
    this.#waiting = new WaitingRoom({ msUntilFree: (it) => this.#msUntilPaid(it), nowMs });
  }

  /** How many connections wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** What counts as one address. */
  groupOf(host: string): string {
    return this.#options.accounts?.groupOf(host) ?? host;
  }

  /** Whether nothing is charged to a host. */
  isSpared(host: string): boolean {
    return this.#options.accounts?.isSpared(host) ?? true;
  }

  /**
   * Have a new connection served by calling `serve`, once it is its turn; never once newcomers are refused. Whether
   * there was room for it.
   */
  enter(connection: Connection, serve: () => void): boolean {
    return this.#waiting.enter(connection, serve);
  }

  /** Forget a connection that is gone. */
  leave(connection: Connection): void {
    this.#waiting.leave(connection);
    this.#reading.leave(connection);
  }

  /** Serve no new connection any more; those that wait. */
  refuseNewcomers(): readonly Connection[] {
    return this.#waiting.close();
  }

  /** Note that a session has begun: those of an address that owes are read in turns from their first bytes. */
  sessionBegan(connection: Connection): void {
    const { address, isTrusted } = connection;
    // Only this one: to look at all of them for each new one would itself be a way to flood.
    if (!isTrusted && this.#msUntilPaid(address) > 0) this.#reading.hold(address, [connection]);
  }

  /** Note that a stranger has begun a call; whether that is a nuisance, since its address owes. */
  callBegan(connection: Connection): boolean {
    const { address, isTrusted } = connection;
    this.brought(connection, A_CALL);
    return !isTrusted && this.#msUntilPaid(address) > 0;
  }

  /**
   * Note what a connection has brought in this turn of the event loop, in tenths of a call. Others of its address that
   * are ready with as much are not read in the same turn.
   */
  brought({ address }: Connection, work: number): void {
    if (this.#brought.size === 0) setImmediate(() => this.#brought.clear());
    const before = this.#brought.get(address) ?? 0;
    this.#brought.set(address, before + work);
    if (before < MUCH_BROUGHT && before + work >= MUCH_BROUGHT) this.readInTurns(address);
  }

  /** Have the strangers of an address read in turns, since they have brought much at once. Once in a turn is enough. */
  readInTurns(address: string): void {
    if (this.#held.has(address)) return;
    if (this.#held.size === 0) setImmediate(() => this.#held.clear());
    this.#held.add(address);
    this.#reading.hold(address, this.#servedOf(address));
  }

  /**
   * Charge what a connection has cost to its address, unless its caller is known. @param mostOwed the largest debt for
   * it, where that is less than for other costs.
   */
  spend({ address, standing, isTrusted }: Connection, cost: number, mostOwed?: number): void {
    const { accounts, nowMs } = this.#options;
    if (cost > 0 && standing !== "known" && !isTrusted) accounts?.spend(address, cost, nowMs(), mostOwed);
  }

  *#servedOf(address: string): Iterable<Connection> {
    for (const connection of this.#options.strangersOf(address)) {
      if (!connection.isWaiting) yield connection;
    }
  }

  #msUntilPaid(address: string): number {
    const { accounts, nowMs } = this.#options;
    return accounts?.msUntilPaid(address, nowMs()) ?? 0;
  }
}
