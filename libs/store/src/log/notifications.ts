import { randomBytes } from "node:crypto";
import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import { sql } from "kysely";
import pg from "pg";
import { connectionConfig, SESSION_CHECK } from "../database/pool.ts";
import type { Db } from "../database/store.ts";
import { StoreClient } from "../database/store-client.ts";

/** Whether notifications arrive; "unknown" until the first check has sent a notification. */
export type NotificationState = "unknown" | "arriving" | "missing";

export interface NotificationOptions {
  readonly url: string;
  readonly applicationName: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Called for each notification with its channel and payload. */
  readonly onNotified: (channel: string, payload: string) => void;
  /** Called whenever notifications may have been missed on any channel. */
  readonly onMissed: () => void;
  /** Checks that notifications arrive; absent for no check. */
  readonly arrival?: NotificationArrival;
}

/** Records whether notifications arrive on the listening connection, and sends the notifications that check it. */
export class NotificationArrival {
  readonly #db: Db;
  readonly #log: Logger;
  #state: NotificationState = "unknown";

  /** @param db must use other connections than the listening one. */
  constructor(db: Db, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  get state(): NotificationState {
    return this.#state;
  }

  async notify(channel: string, payload: string): Promise<void> {
    await sql`select pg_notify(${channel}, ${payload})`.execute(this.#db);
  }

  /** Record the outcome of a check. */
  note(state: NotificationState): void {
    const before = this.#state;
    this.#state = state;
    if (state === before) return;
    const log = this.#log;
    if (state === "missing") log.error({}, "postgres notifications do not arrive, polling for changes");
    else if (before === "missing") log.info({}, "postgres notifications arrive again");
  }
}

const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/**
 * How often to check the connection, in milliseconds. A listening connection sends nothing, so without a check the loss
 * of its server would go unnoticed.
 */
const CHECK_EVERY_MS = 10_000;
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Listen on channels over a separate connection until the signal aborts. The connection is reopened when it is lost,
 * its server does not respond or accepts no writes, its session no longer listens, or notifications do not arrive.
 */
export async function listenUntil(
  channels: readonly string[],
  options: NotificationOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, onMissed } = options;
  let attempt = 0;
  while (!signal.aborted) {
    try {
      await listenOnce(channels, options, signal, () => {
        attempt = 0;
        onMissed();
      });
    } catch (err) {
      log.debug({ err, attempt }, "cannot listen for notifications");
    }
    if (signal.aborted) return;
    const ms = fullJitter({
      attempt,
      baseMs: BACKOFF_BASE_MS,
      maxMs: BACKOFF_MAX_MS,
      random01: Math.random(),
    });
    attempt += 1;
    // Ignore the rejection: only an abort interrupts the sleep, and the loop checks for it.
    await clock.sleep(ms, signal).catch(() => {});
  }
}

async function listenOnce(
  channels: readonly string[],
  options: NotificationOptions,
  signal: AbortSignal,
  onListening: () => void,
): Promise<void> {
  const client = new StoreClient(connectionConfig(options));
  const isOver = new AbortController();
  const ended = new Promise<void>((resolve) => {
    client.once("end", () => {
      isOver.abort();
      resolve();
    });
  });
  const own = new OwnChannel(options);
  // Only log the error, because a lost connection also emits "end", which is handled below. Without a listener, the
  // error event would end this process.
  client.on("error", (err) => options.log.debug({ err }, "notification connection lost"));
  client.on("notification", ({ channel, payload = "" }) => {
    if (channel === own.name) own.receive(payload);
    else options.onNotified(channel, payload);
  });
  const onAbort = () => void client.end().catch(() => {});
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // Also wait for the end: if a client is ended while it connects, its connect() never settles.
    await Promise.race([client.connect(), ended]);
    if (signal.aborted) return;
    await checkSession(client);
    const all = [...channels, own.name];
    await client.query(all.map((channel) => `listen ${pg.escapeIdentifier(channel)}`).join("; "));
    onListening();
    await checkUntilEnd({ client, channels: all.length, own }, options.clock, AbortSignal.any([signal, isOver.signal]));
    await ended;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await client.end().catch(() => {});
  }
}

/** A listening connection, and its channels. */
interface Listening {
  readonly client: pg.Client;
  readonly channels: number;
  readonly own: OwnChannel;
}

async function checkUntilEnd({ client, channels, own }: Listening, clock: Clock, signal: AbortSignal): Promise<void> {
  for (;;) {
    await own.check(signal);
    // Ignore the rejection: only an abort interrupts the sleep, and the next line checks for it.
    await clock.sleep(CHECK_EVERY_MS, signal).catch(() => {});
    if (signal.aborted) return;
    await checkSession(client);
    const query = { text: "select from pg_listening_channels()", query_timeout: ANSWER_TIMEOUT_MS };
    const { rowCount } = await client.query(query);
    if (rowCount !== channels) throw new Error("the session no longer listens");
    // Check that the session is not in a transaction, because Postgres sends notifications only outside transactions.
    if (client.getTransactionStatus() !== "I")
      throw new Error("the session is in a transaction that another client began");
  }
}

/**
 * A connection's private channel, to check that notifications arrive. Behind a pooler in transaction mode, every
 * statement succeeds, even LISTEN, but notifications do not arrive.
 */
class OwnChannel {
  readonly name = `rollcall_check_${randomBytes(8).toString("hex")}`;
  readonly #options: Pick<NotificationOptions, "arrival" | "clock" | "log">;
  #sent = 0;
  #onReceived: () => void = () => {};

  constructor(options: NotificationOptions) {
    this.#options = options;
  }

  receive(payload: string): void {
    // Ignore a notification from an earlier check, because it proves nothing about the current check.
    if (payload === String(this.#sent)) this.#onReceived();
  }

  /** Send a notification. Throws when it does not arrive within 5 seconds after its commit. */
  async check(signal: AbortSignal): Promise<void> {
    const { arrival, clock, log } = this.#options;
    if (arrival === undefined || signal.aborted) return;
    const received = new AbortController();
    this.#onReceived = () => received.abort();
    this.#sent += 1;
    try {
      await arrival.notify(this.name, String(this.#sent));
    } catch (err) {
      log.debug({ err }, "cannot check that notifications arrive");
      return;
    }
    await clock.sleep(ANSWER_TIMEOUT_MS, AbortSignal.any([signal, received.signal])).catch(() => {});
    if (received.signal.aborted) {
      arrival.note("arriving");
      return;
    }
    if (signal.aborted) return;
    arrival.note("missing");
    throw new Error("notifications do not arrive");
  }
}

/**
 * Throw in a session that cannot write: the session's server may no longer be the primary, and would send no
 * notifications.
 */
async function checkSession(client: pg.Client): Promise<void> {
  const query = { text: SESSION_CHECK, query_timeout: ANSWER_TIMEOUT_MS };
  await client.query(query);
}
