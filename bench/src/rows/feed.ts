import { EVERY_EVENT, type EventInterest, replicaInterest } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { EventFeed, openStore } from "@rollcall/store";
import type { Client } from "pg";
import type { Bench, BenchContext } from "../bench-context.ts";
import { type BenchDatabase, startDatabase, withClient } from "../servers/database.ts";

const MOST_EVENTS = 200_000;
const SEED_BATCH = 5_000;
const REPLICA = "replica-0";
/** The number of rounds. Each round reads all events, and the two ways of reading alternate. */
const ROUNDS = 3;

interface Cost {
  /** The CPU per event, in microseconds. */
  readonly process: number;
  readonly postgres: number;
}

/**
 * Measures what an event costs a replica that it does not concern, for example the moves of agents when a fleet
 * comes back.
 */
export const feed: Bench = {
  name: "feed",
  title: "following a log of moves between other replicas",
  async run(context) {
    const database = await startDatabase(context);
    const count = Math.min(context.size.events, MOST_EVENTS);
    await withClient(database.url, (client) => seedMoves(client, count));
    context.progress(`${count} events seeded`);
    const skipped: Cost[] = [];
    const read: Cost[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      read.push(await follow(context, database, EVERY_EVENT, count));
      skipped.push(await follow(context, database, replicaInterest(REPLICA), 0));
    }
    const least = (costs: readonly Cost[], of: keyof Cost) => Math.min(...costs.map((cost) => cost[of])) / count;
    const shared = { unit: "µs/event", against: "decoded and looked up" };
    return [
      {
        ...{ figure: "CPU of the replica", ...shared, target: "0.1 or less" },
        measured: least(skipped, "process"),
        compared: least(read, "process"),
      },
      {
        ...{ figure: "CPU of Postgres", ...shared, target: "" },
        measured: least(skipped, "postgres"),
        compared: least(read, "postgres"),
      },
    ];
  },
};

/** Follow the log from start to end, and look up the node of each event. Returns the CPU in microseconds. */
async function follow(
  context: BenchContext,
  { url, cpuSeconds }: BenchDatabase,
  interest: EventInterest,
  expected: number,
): Promise<Cost> {
  const store = await openStore({ url, applicationName: "bench follower", poolSize: 2, log: silentLogger });
  const eventFeed = new EventFeed({ store: store.reserved, log: silentLogger });
  const held = new Map(Array.from({ length: context.size.agents }, (_, node) => [`held-${node}`, node]));
  let seen = 0;
  let known = 0;
  eventFeed.follow({
    interest,
    deliver: (events) => {
      seen += events.length;
      for (const { subject } of events) if (held.has(subject)) known += 1;
    },
  });
  const before = process.cpuUsage();
  const postgresBefore = cpuSeconds();
  await eventFeed.start(0n);
  const { user, system } = process.cpuUsage(before);
  const postgres = (cpuSeconds() - postgresBefore) * 1_000_000;
  await eventFeed.close();
  await store.close();
  if (seen !== expected || known > 0) throw new Error(`${seen} events were delivered instead of ${expected}`);
  return { process: user + system, postgres };
}

async function seedMoves(client: Client, count: number): Promise<void> {
  for (let done = 0; done < count; done += SEED_BATCH) {
    await client.query(
      `select append_events(jsonb_agg(jsonb_build_object(
         'type', 'node.session.moved', 'subject', 'node-' || n % 10000, 'actor', 'replica:replica-2',
         'reason', 'STREAM_MOVED', 'message', '', 'displaces', 'replica-1',
         'before', jsonb_build_object('replica', 'replica-1'),
         'after', jsonb_build_object('replica', 'replica-2'))))
       from generate_series($1::integer, $2::integer) as n`,
      [done + 1, Math.min(done + SEED_BATCH, count)],
    );
  }
}
