import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import pg from "pg";
import { connectionConfig, SESSION_CHECK } from "../database/pool.ts";
import { RecordClient } from "../database/record-client.ts";

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
}

const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** A connection that listens sends nothing, so nothing else would notice that its server is gone. */
const CHECK_EVERY_MS = 10_000;
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Listen on channels over a connection of its own, until the signal aborts. It is opened again whenever it is lost, its
 * server does not answer or accepts no writes, or its session listens no more.
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
  // The loss of the connection shows as its end; without a listener the error would end this process.
  client.on("error", (err) => options.log.debug({ err }, "notification connection lost"));
  client.on("notification", ({ channel, payload = "" }) => options.onNotified(channel, payload));
  const onAbort = () => void client.end().catch(() => {});
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // A client that is ended while it connects forgets to settle that call.
    await Promise.race([client.connect(), ended]);
    if (signal.aborted) return;
    await checkSession(client);
    await client.query(channels.map((channel) => `listen ${pg.escapeIdentifier(channel)}`).join("; "));
    onListening();
    await checkUntilEnd(client, channels.length, options.clock, AbortSignal.any([signal, isOver.signal]));
    await ended;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await client.end().catch(() => {});
  }
}

async function checkUntilEnd(client: pg.Client, channels: number, clock: Clock, signal: AbortSignal): Promise<void> {
  for (;;) {
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

/** Fails in a session that cannot write: its server may have been replaced, and will notify of nothing. */
async function checkSession(client: pg.Client): Promise<void> {
  const query = { text: SESSION_CHECK, query_timeout: ANSWER_TIMEOUT_MS };
  await client.query(query);
}
