import type { NatsConnection, Status } from "@nats-io/transport-node";
import { type Clock, halfJitter, type Logger, type MetricsRegistry, systemClock } from "@rollcall/process";
import { dialNats } from "./dial-nats.ts";
import { connectedGauge } from "./metrics.ts";
import { type NatsSettings, toConnectionOptions } from "./nats-settings.ts";

export interface NatsLinkOptions {
  readonly settings: NatsSettings;
  /** The connection's name in the server's monitoring, for example "rollcall registry". */
  readonly name: string;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly metrics?: MetricsRegistry;
  /** How long to wait for one server to respond, in milliseconds. Default 5 s. */
  readonly connectTimeoutMs?: number;
  /** Interval between pings; after three unanswered pings the connection is dropped. Default 10 s. */
  readonly pingIntervalMs?: number;
  /** Maximum delay after the first failure. The maximum doubles with each further failure. Default 250 ms. */
  readonly backoffBaseMs?: number;
  /** Maximum delay after any number of failures. Default 10 s. */
  readonly backoffMaxMs?: number;
  /** Returns random numbers in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

/** Connect in the background, and reconnect whenever the connection is lost, until the link is closed. */
export function connectNats(options: NatsLinkOptions): NatsLink {
  return new NatsLink(options);
}

// Maximum number of unanswered pings. When another ping is due after that, the client drops the connection.
const UNANSWERED_PINGS = 2;

/**
 * A link to NATS that survives the loss of connections. When a connection is lost, all pending requests on it fail
 * immediately.
 */
export class NatsLink {
  readonly #options: NatsLinkOptions;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  readonly #waiting = new Set<(connection: NatsConnection) => void>();
  readonly #loop: Promise<void>;
  #current: NatsConnection | null = null;

  constructor(options: NatsLinkOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#loop = this.#stayConnected();
  }

  /** The current connection; null while disconnected. */
  get connection(): NatsConnection | null {
    return this.#current;
  }

  /** Resolves when connected; rejects when the link is closed or the signal aborts. */
  async connected(signal?: AbortSignal): Promise<NatsConnection> {
    const ended = signal === undefined ? [] : [signal];
    const either = AbortSignal.any([this.#closing.signal, ...ended]);
    either.throwIfAborted();
    if (this.#current !== null) return this.#current;
    return await new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(onConnected);
        reject(either.reason);
      };
      const onConnected = (connection: NatsConnection) => {
        either.removeEventListener("abort", onAbort);
        resolve(connection);
      };
      this.#waiting.add(onConnected);
      either.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Close the link and its connection immediately. Unacknowledged messages fail. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the link to nats is closed"));
    await this.#current?.close();
    await this.#loop;
  }

  async #stayConnected(): Promise<void> {
    const { signal } = this.#closing;
    let failures = 0;
    while (!signal.aborted) {
      const connection = await this.#dialAny();
      failures = connection === null ? failures + 1 : 0;
      if (connection !== null) await this.#use(connection);
      if (signal.aborted) break;
      // Ignore the rejection: the sleep rejects only when the link is closed, which the loop condition checks
      // next.
      await this.#clock.sleep(this.#pauseMs(failures), signal).catch(() => {});
    }
  }

  /** Connect to any of the servers; null when none responds. */
  async #dialAny(): Promise<NatsConnection | null> {
    const { settings, name, log, connectTimeoutMs = 5_000, pingIntervalMs = 10_000 } = this.#options;
    const { signal } = this.#closing;
    for (const url of shuffled(settings.urls, this.#random)) {
      try {
        const options = await toConnectionOptions(settings, url);
        const limits = { timeout: connectTimeoutMs, pingInterval: pingIntervalMs };
        return await dialNats(
          { ...options, ...limits, name, maxPingOut: UNANSWERED_PINGS, noAsyncTraces: true },
          signal,
        );
      } catch (error) {
        if (signal.aborted) return null;
        log.warn({ server: url.address, err: error }, "cannot connect to nats");
      }
    }
    return null;
  }

  async #use(connection: NatsConnection): Promise<void> {
    const { log, metrics } = this.#options;
    const server = connection.getServer();
    const gauge = metrics === undefined ? null : connectedGauge(metrics);
    const watching = this.#watch(connection, server);
    log.info({ server, server_version: connection.info?.version }, "connected to nats");
    this.#current = connection;
    gauge?.set(1);
    for (const onConnected of this.#waiting) onConnected(connection);
    this.#waiting.clear();
    if (this.#closing.signal.aborted) await connection.close();
    const error = await connection.closed();
    this.#current = null;
    gauge?.set(0);
    await watching;
    if (!this.#closing.signal.aborted) log.warn({ server, err: error }, "connection to nats lost");
  }

  async #watch(connection: NatsConnection, server: string): Promise<void> {
    for await (const status of connection.status()) {
      this.#logStatus(status, server);
      // Close the connection without waiting, because close() flushes first, and never finishes if the server has
      // stopped reading.
      if (status.type === "staleConnection") connection.close().catch(() => {});
    }
  }

  #logStatus(status: Status, server: string): void {
    const { log } = this.#options;
    if (status.type === "error") log.warn({ server, err: status.error }, "error from nats");
    else if (status.type === "staleConnection") log.warn({ server }, "nats does not answer");
    else if (status.type === "ldm") log.info({ server }, "nats server is about to stop");
  }

  /**
   * The delay before the next attempt: a random time between half of the maximum delay and the maximum. The lower
   * bound prevents a busy loop if a server drops connections immediately.
   */
  #pauseMs(failures: number): number {
    const { backoffBaseMs = 250, backoffMaxMs = 10_000 } = this.#options;
    const limits = { baseMs: backoffBaseMs, maxMs: backoffMaxMs };
    return halfJitter({ attempt: Math.max(failures - 1, 0), ...limits, random01: this.#random() });
  }

  readonly #random = (): number => (this.#options.random ?? Math.random)();
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  return items
    .map((item) => ({ item, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}
