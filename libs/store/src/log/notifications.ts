import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import pg from "pg";
import { connectionConfig } from "../database/pool.ts";

/** What a listener for notifications needs. */
export interface NotificationOptions {
  readonly url: string;
  readonly applicationName: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Called for each notification with its payload, and with null whenever some may have been missed. */
  readonly onWake: (payload: string | null) => void;
}

const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 5_000;

/** Listen on a channel over a connection of its own, opened again whenever it is lost, until the signal aborts. */
export async function listenUntil(channel: string, options: NotificationOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, onWake } = options;
  let attempt = 0;
  while (!signal.aborted) {
    try {
      await listenOnce(channel, options, signal, () => {
        attempt = 0;
        onWake(null);
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
  channel: string,
  options: NotificationOptions,
  signal: AbortSignal,
  onListening: () => void,
): Promise<void> {
  const client = new pg.Client(connectionConfig(options));
  const ended = new Promise<void>((resolve) => {
    client.once("end", resolve);
  });
  // The loss of the connection shows as its end; without a listener the error would end this process.
  client.on("error", (err) => options.log.debug({ err }, "notification connection lost"));
  client.on("notification", ({ payload }) => options.onWake(payload ?? null));
  const onAbort = () => void client.end().catch(() => {});
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // A client that is ended while it connects forgets to settle that call.
    await Promise.race([client.connect(), ended]);
    if (signal.aborted) return;
    await client.query(`listen ${pg.escapeIdentifier(channel)}`);
    onListening();
    await ended;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await client.end().catch(() => {});
  }
}
