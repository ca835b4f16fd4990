import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import type { Bench } from "../bench-context.ts";
import { startDatabase, withClient } from "../servers/database.ts";
import { startNats } from "../servers/nats.ts";
import { startService } from "../servers/rollcall.ts";

const MOST_EVENTS = 200_000;
const SEED_BATCH = 5_000;
const SCAN_EVERY_MS = 10;
const LIMIT_MS = 300_000;
const AIM_PER_SECOND = 5_000;

/** Measures how fast a backlog of the log is relayed to NATS. */
export const relay: Bench = {
  name: "relay",
  title: "the log from Postgres to a JetStream stream on disk, each event acknowledged",
  async run(context) {
    const count = Math.min(context.size.events, MOST_EVENTS);
    const nats = await startNats(context);
    const { url } = await startDatabase(context);
    return withClient(url, async (client) => {
      await seedEvents(client, count);
      context.progress(`${count} events seeded`);
      const { server } = await startService(context, "registry", url, ["--nats", nats.url]);
      const cpuBefore = server.cpuSeconds();
      const { events, elapsedMs } = await relayAll(client);
      const cpu = server.cpuSeconds() - cpuBefore;
      return [
        {
          figure: "log to NATS",
          measured: (events / elapsedMs) * 1_000,
          unit: "events/s",
          against: "aim",
          compared: AIM_PER_SECOND,
          target: "1 or more",
        },
        {
          figure: "in the stream",
          measured: await nats.storedMessages(),
          unit: "events",
          against: "the log",
          compared: Number((await readRelay(client)).head),
          target: "1",
        },
        {
          figure: "CPU of the registry",
          measured: (cpu / events) * 1_000_000,
          unit: "µs/event",
          against: "one core at the target rate",
          compared: 1_000_000 / AIM_PER_SECOND,
          target: "",
        },
      ];
    });
  },
};

/** Wait until everything is relayed. The result excludes events that were relayed before the first poll. */
async function relayAll(client: Client) {
  const limitMs = performance.now() + LIMIT_MS;
  let begun: { readonly revision: bigint; readonly atMs: number } | null = null;
  for (;;) {
    const { revision, head } = await readRelay(client);
    const atMs = performance.now();
    if (begun === null && revision > 0n) begun = { revision, atMs };
    if (begun !== null && revision === head) {
      return { events: Number(head - begun.revision), elapsedMs: atMs - begun.atMs };
    }
    if (atMs > limitMs) throw new Error(`relayed only up to ${revision} of ${head}`);
    await delay(SCAN_EVERY_MS);
  }
}

async function readRelay(client: Client) {
  const { rows } = await client.query("select revision, (select max(revision) from events) as head from event_relay");
  return { revision: BigInt(rows[0].revision), head: BigInt(rows[0].head) };
}

async function seedEvents(client: Client, count: number): Promise<void> {
  for (let done = 0; done < count; done += SEED_BATCH) {
    await client.query(
      `select append_events(jsonb_agg(jsonb_build_object(
         'type', 'node.health.changed', 'subject', 'node-' || n % 10000, 'actor', 'replica:bench',
         'reason', 'HEARTBEAT_MISSED', 'message', 'nothing was received for 60 s',
         'before', jsonb_build_object('health', 'HEALTHY'),
         'after', jsonb_build_object('health', 'UNHEALTHY'))))
       from generate_series($1::integer, $2::integer) as n`,
      [done + 1, Math.min(done + SEED_BATCH, count)],
    );
  }
  await client.query("vacuum analyze events");
}
