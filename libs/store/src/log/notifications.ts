import { randomBytes } from "node:crypto";
import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import { sql } from "kysely";
import pg from "pg";
import { connectionConfig, SESSION_CHECK } from "../database/pool.ts";
import { RecordClient } from "../database/record-client.ts";
import type { Db } from "../database/store.ts";

/** Whether notifications arrive: unknown until the first check, and while the database cannot be asked. */
export type NotificationState = "unknown" | "arriving" | "missing";

/** What a listener for notifications needs. */
export interface NotificationOptions {
  readonly url: string;
  readonly applicationName: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Called for each notification with its channel and payload. */
  readonly onNotified: (channel: string, payload: string) => void;
  /** Called whenever notifications may have been missed, on any channel. */
  readonly onMissed: () => void;
  /** By which it is checked that notifications arrive; without it, that is not checked. */
  readonly arrival?: NotificationArrival;
}

/** Whether notifications arrive on the listening connection. */
export class NotificationArrival {
  readonly #db: Db;
  readonly #log: Logger;
  #state: NotificationState = "unknown";

  /** @param db over other connections than the one that listens. */
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

  /** Note the outcome of a check. */
  note(state: NotificationState): void {
    const before = this.#state;
    this.#state = state;
    if (state === before) return;
    const log = this.#log;
    if (state === "missing") log.error({}, "notifications of postgres do not arrive, changes are found by polling");
    else if (before === "missing") log.info({}, "notifications of postgres arrive again");
  }
}

const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** A connection that listens sends nothing, so nothing else would notice that its server is gone. */
const CHECK_EVERY_MS = 10_000;
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Listen on channels over a separate connection, until the signal aborts. It is opened again whenever it is lost, its
 * server does not answer or accepts no writes, its session does not listen any more, or notifications do not arrive.
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
    // Only the end of the signal interrupts it, and the loop sees that itself.
    await clock.sleep(ms, signal).catch(() => {});
  }
}

async function listenOnce(
  channels: readonly string[],
  options: NotificationOptions,
  signal: AbortSignal,
  onListening: () => void,
): Promise<void> {
  const client = new RecordClient(connectionConfig(options));
  const isOver = new AbortController();
  const ended = new Promise<void>((resolve) => {
    client.once("end", () => {
      isOver.abort();
      resolve();
    });
  });
  const own = new OwnChannel(options);
  // The loss of the connection shows as its end; without a listener the error would end this process.
  client.on("error", (err) => options.log.debug({ err }, "notification connection lost"));
  client.on("notification", ({ channel, payload = "" }) => {
    if (channel === own.name) own.receive(payload);
    else options.onNotified(channel, payload);
  });
  const onAbort = () => void client.end().catch(() => {});
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // A client that is ended while it connects forgets to settle that call.
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

/** What is checked of a connection that listens. */
interface Listening {
  readonly client: pg.Client;
  readonly channels: number;
  readonly own: OwnChannel;
}

async function checkUntilEnd({ client, channels, own }: Listening, clock: Clock, signal: AbortSignal): Promise<void> {
  for (;;) {
    await own.check(signal);
    // Only the end of the signal interrupts it, which the next line sees.
    await clock.sleep(CHECK_EVERY_MS, signal).catch(() => {});
    if (signal.aborted) return;
    await checkSession(client);
    const query = { text: "select from pg_listening_channels()", query_timeout: ANSWER_TIMEOUT_MS };
    const { rowCount } = await client.query(query);
    if (rowCount !== channels) throw new Error("the session does not listen any more");
    // Postgres notifies a session only outside transactions.
    if (client.getTransactionStatus() !== "I")
      throw new Error("the session is in a transaction that was not begun here");
  }
}

/**
 * The channel of one connection, by which it is checked that notifications arrive there. Behind a pooler in transaction
 * mode every statement succeeds, LISTEN included, and no notification comes.
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
    // One that comes late says nothing about the present check.
    if (payload === String(this.#sent)) this.#onReceived();
  }

  /** Throws when a notification does not arrive within seconds after it was committed. */
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

/** Fails in a session that cannot write: its server may have been replaced, and will notify of nothing. */
async function checkSession(client: pg.Client): Promise<void> {
  const query = { text: SESSION_CHECK, query_timeout: ANSWER_TIMEOUT_MS };
  await client.query(query);
}
