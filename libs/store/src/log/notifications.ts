import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import pg from "pg";
import { connectionConfig } from "../database/pool.ts";

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

/** Listen on channels over a connection of its own, opened again whenever it is lost, until the signal aborts. */
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
  const client = new pg.Client(connectionConfig(options));
  const ended = new Promise<void>((resolve) => {
    client.once("end", resolve);
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
    await client.query(channels.map((channel) => `listen ${pg.escapeIdentifier(channel)}`).join("; "));
    onListening();
    await ended;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await client.end().catch(() => {});
  }
}
