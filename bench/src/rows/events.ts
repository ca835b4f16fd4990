import { setTimeout as pause } from "node:timers/promises";
import type { Bench, BenchContext } from "../bench-context.ts";
import { LoadProcess } from "../load/load-process.ts";
import type { WatchOrder, WatchOutcome } from "../load/watch-load.ts";
import { type Figure, percentileOfCounts } from "../report.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { type RunningService, startService } from "../servers/rollcall.ts";

const WATCHERS = 1_000;
/**
 * The number of watchers that one process should be able to serve. The target latency is the time that one pass over
 * all of them can take.
 */
const MANY_WATCHERS = 10_000;
const EVENTS_PER_SECOND = 40;
const SEED_BATCH = 5_000;
const VALIDATING_CLIENTS = 3;
const AIM_CATCH_UP = 20_000;
const AIM_P99_MS = 50;
const AIM_P99_OF_MANY_MS = 250;
const AIM_KB = 15;

/**
 * Watches a long log. Measures how fast a client catches up and what a thousand watchers cost, and checks that no
 * event is lost.
 */
export const events: Bench = {
  name: "events",
  title:
    `watching: a long log by one watcher, and ${EVENTS_PER_SECOND} events/s by ${WATCHERS} and by ${MANY_WATCHERS} ` +
    "watchers",
  async run(context) {
    const { url } = await startDatabase(context);
    const count = context.size.events;
    await seedEvents(url, count);
    context.progress(`${count} events seeded`);
    const token = await createAccessToken(url);
    // All watchers of the loader are one caller, whose number of streams is limited by default.
    const streams = `Listen.StreamsPerCaller=${2 * MANY_WATCHERS}`;
    const service = await startService(context, "registry", url, ["--set", streams]);
    const load = new LoadProcess<WatchOrder, WatchOutcome>("watch-load");
    context.atEnd(() => load.stop());
    const { port } = service;

    const caughtUp = await load.order({ kind: "catch-up", port, token, events: count });
    context.progress("caught up");
    const clients = VALIDATING_CLIENTS;
    const checked = await load.order({ kind: "validate", port, token, events: count, clients });
    context.progress(`checked, over ${checked.resumed} broken connections`);
    return [
      {
        figure: "log to one watcher",
        measured: (caughtUp.received / caughtUp.elapsedMs) * 1_000,
        unit: "events/s",
        against: "aim",
        compared: AIM_CATCH_UP,
        target: "1 or more",
      },
      {
        figure: "checked by clients that reconnect",
        measured: checked.received - checked.wrong,
        unit: "events",
        against: `${clients} times the log`,
        compared: count * clients,
        target: "1",
      },
      ...(await measureMany(context, { url, token, service, load, watchers: WATCHERS, aimMs: AIM_P99_MS })),
      ...(await measureMany(context, {
        ...{ url, token, service, load },
        ...{ watchers: MANY_WATCHERS, aimMs: AIM_P99_OF_MANY_MS },
      })),
    ];
  },
};

interface Setup {
  readonly url: string;
  readonly token: string;
  readonly service: RunningService;
  readonly load: LoadProcess<WatchOrder, WatchOutcome>;
  readonly watchers: number;
  /** The target for the time from commit to watcher, at the 99th percentile. */
  readonly aimMs: number;
}

async function measureMany(
  context: BenchContext,
  { url, token, service, load, watchers, aimMs }: Setup,
): Promise<readonly Figure[]> {
  const { port, server } = service;
  const before = await server.memory();
  await load.order({ kind: "hold", port, token, watchers });
  context.progress(`${watchers} watchers connected`);
  const after = await server.memory();
  const eventsEach = Math.round((context.size.durationMs / 1_000) * EVENTS_PER_SECOND);
  const cpuBefore = server.cpuSeconds();
  const listening = load.order({ kind: "listen", port, token, eventsEach });
  // Wait, because the order must arrive before the first event does.
  await pause(1_000);
  await writeSteadily(url, eventsEach);
  const heard = await listening;
  const cpu = (server.cpuSeconds() - cpuBefore) / (heard.elapsedMs / 1_000);
  await load.order({ kind: "release", port, token });
  const latency = { unit: "ms", against: "aim for p99", compared: aimMs };
  const bytes = (after.heapBytes - before.heapBytes) / watchers;
  const to = `to ${watchers} watchers`;
  return [
    {
      figure: `commit ${to}, p50`,
      measured: percentileOfCounts(heard.countByMs, 0.5),
      ...latency,
      target: "",
    },
    {
      figure: `commit ${to}, p99`,
      measured: percentileOfCounts(heard.countByMs, 0.99),
      ...latency,
      target: "1 or less",
    },
    {
      figure: `registry's CPU, ${to}`,
      measured: cpu,
      unit: "cores",
      against: "one core",
      compared: 1,
      target: "",
    },
    {
      figure: `memory per watcher, ${watchers} watchers`,
      measured: bytes / 1_024,
      unit: "KB",
      against: "aim",
      compared: AIM_KB,
      target: "1 or less",
    },
  ];
}

/** Number the subjects, so that a reader can detect missing events. */
async function seedEvents(url: string, count: number): Promise<void> {
  await withClient(url, async (client) => {
    for (let from = 0; from < count; from += SEED_BATCH) {
      const batch = Array.from({ length: Math.min(SEED_BATCH, count - from) }, (_, index) =>
        eventOf(`n${from + index}`, ""),
      );
      await client.query("select append_events($1::jsonb)", [JSON.stringify(batch)]);
    }
    await client.query("vacuum analyze events");
  });
}

/** Take the timestamp of an event before its commit, so that the measurement includes the commit. */
async function writeSteadily(url: string, count: number): Promise<void> {
  await withClient(url, async (client) => {
    const begin = performance.now();
    for (let index = 0; index < count; index += 1) {
      const dueMs = begin + (index * 1_000) / EVENTS_PER_SECOND;
      await pause(Math.max(0, dueMs - performance.now()));
      const event = eventOf(`late-${index}`, `at=${Date.now()};`);
      await client.query("select append_events($1::jsonb)", [JSON.stringify([event])]);
    }
  });
}

function eventOf(subject: string, message: string) {
  return {
    type: "node.health.changed",
    subject,
    actor: "replica:bench",
    reason: "HEARTBEATS_MISSED",
    message,
    before: { health: "HEALTHY" },
    after: { health: "UNHEALTHY" },
  };
}
