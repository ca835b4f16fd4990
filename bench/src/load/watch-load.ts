import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { WatchEventsRequestSchema, WatchEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { Http2Connection } from "./http2-connection.ts";
import { messageFrame } from "./http2-frames.ts";
import { answerOrders } from "./orders.ts";
import { countEvents } from "./watch-frames.ts";

/** An order to this process. */
export type WatchOrder = { readonly port: number; readonly token: string } & (
  | { readonly kind: "catch-up"; readonly events: number }
  /** Read the log with several clients that break their connections and resume, and check each event. */
  | { readonly kind: "validate"; readonly events: number; readonly clients: number }
  /** Start this many watches. They stay open until "release". */
  | { readonly kind: "hold"; readonly watchers: number }
  /** Measure the latency of each event on the held watches, until each watch has received this many events. */
  | { readonly kind: "listen"; readonly eventsEach: number }
  /** Close the held watches. */
  | { readonly kind: "release" }
);

/** The result of an order. */
export interface WatchOutcome {
  readonly received: number;
  readonly elapsedMs: number;
  /** The number of events that were out of order, duplicated or missing. */
  readonly wrong: number;
  /** The number of streams that were resumed. */
  readonly resumed: number;
  /**
   * The number of events for each whole millisecond of latency, from 0 on. Latency is measured from before the
   * commit to the receipt. The last bucket counts all slower events.
   */
  readonly countByMs: readonly number[];
}

type Reader = (message: Buffer) => void;

const WATCH_PATH = "/rollcall.events.v1.EventService/WatchEvents";
const STREAMS_OF_ONE_CONNECTION = 20;
const LIMIT_MS = 600_000;
/** The number of messages after which a validating client breaks its connection. */
const BREAK_AFTER = 97;
const LONGEST_LATENCY_MS = 60_000;

type Start = Parameters<typeof create<typeof WatchEventsRequestSchema>>[1];
const BEGINNING: Start = { start: { case: "fromBeginning", value: true } };

let listener: Reader = () => {};
const held: Http2Connection[] = [];

/** Start watches on a connection as soon as it accepts calls. */
function watch(
  connection: Http2Connection,
  token: string,
  request: Start,
  { streams, fail }: { readonly streams: number; fail(why: string): void },
): void {
  const encoded = toBinary(WatchEventsRequestSchema, create(WatchEventsRequestSchema, request));
  connection.ready.then(
    () => {
      for (let stream = 0; stream < streams; stream += 1) {
        const streamId = connection.openStream(WATCH_PATH, { authorization: `Bearer ${token}` });
        connection.write(messageFrame(streamId, encoded, true));
      }
    },
    (error: unknown) => fail(String(error)),
  );
}

/** Resolves when `finish` is called. Rejects when `fail` is called or when the time limit is reached. */
function withinLimit(begin: (finish: () => void, fail: (why: string) => void) => void) {
  return new Promise<void>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(why));
    const timer = setTimeout(() => fail("it took too long"), LIMIT_MS);
    begin(() => {
      clearTimeout(timer);
      resolve();
    }, fail);
  });
}

async function catchUp({ port, token, events }: WatchOrder & { kind: "catch-up" }) {
  let received = 0;
  await withinLimit((finish, fail) => {
    const connection = new Http2Connection(
      { port, localAddress: "127.0.0.2" },
      {
        onMessage: (_, message) => {
          received += countEvents(message);
          if (received < events) return;
          connection.close();
          finish();
        },
        onStreamEnd: () => fail("the stream ended"),
        onClose: () => {},
      },
    );
    watch(connection, token, BEGINNING, { streams: 1, fail });
  });
  return { received, wrong: 0, resumed: 0, countByMs: [] };
}

async function validate(order: WatchOrder & { kind: "validate" }) {
  const outcomes = await Promise.all(
    Array.from({ length: order.clients }, (_, client) => validateOne(order, BREAK_AFTER + client)),
  );
  const sum = (pick: (one: (typeof outcomes)[number]) => number) =>
    outcomes.reduce((total, one) => total + pick(one), 0);
  return {
    received: sum(({ received }) => received),
    wrong: sum(({ wrong }) => wrong),
    resumed: sum(({ resumed }) => resumed),
    countByMs: [],
  };
}

/**
 * Read the log and check the order of events. Their subjects are numbered in the order in which they were
 * written, so a repeated, missing or misplaced event breaks the sequence.
 */
async function validateOne({ port, token, events }: WatchOrder & { kind: "validate" }, breakAfter: number) {
  const outcome = { received: 0, wrong: 0, resumed: -1 };
  let request: Start = BEGINNING;
  await withinLimit((finish, fail) => {
    const connect = (): void => {
      outcome.resumed += 1;
      let messages = 0;
      const connection = new Http2Connection(
        { port, localAddress: "127.0.0.3" },
        {
          onMessage: (_, bytes) => {
            // Ignore messages that still arrive over an abandoned connection.
            if (messages > breakAfter) return;
            const message = fromBinary(WatchEventsResponseSchema, bytes);
            for (const { subject } of message.events) {
              if (subject !== `n${outcome.received}`) outcome.wrong += 1;
              outcome.received += 1;
            }
            request = { start: { case: "resumeToken", value: message.resumeToken } };
            messages += 1;
            if (outcome.received >= events) {
              messages = breakAfter + 1;
              connection.close();
              finish();
            } else if (messages > breakAfter) {
              connection.close();
              connect();
            }
          },
          onStreamEnd: () => fail("the stream ended"),
          onClose: () => {},
        },
      );
      watch(connection, token, request, { streams: 1, fail });
    };
    connect();
  });
  return outcome;
}

async function hold({ port, token, watchers }: WatchOrder & { kind: "hold" }) {
  let begun = 0;
  await withinLimit((finish, fail) => {
    listener = () => {
      // Count the first message of each watch, which is a bookmark.
      begun += 1;
      if (begun === watchers) finish();
    };
    for (let from = 0; from < watchers; from += STREAMS_OF_ONE_CONNECTION) {
      const connection = new Http2Connection(
        { port, localAddress: `127.0.0.${4 + (from % 7)}` },
        {
          onMessage: (_, message) => listener(message),
          onStreamEnd: () => fail("a stream ended"),
          onClose: () => {},
        },
      );
      held.push(connection);
      const streams = Math.min(STREAMS_OF_ONE_CONNECTION, watchers - from);
      watch(connection, token, {}, { streams, fail });
    }
  });
  return { received: begun, wrong: 0, resumed: 0, countByMs: [] };
}

/** Measure latencies. Each event contains the time at which it was sent, as "at=<wall time in ms>;". */
async function listen({ eventsEach }: WatchOrder & { kind: "listen" }, watchers: number) {
  const countByMs = new Array<number>(LONGEST_LATENCY_MS + 1).fill(0);
  let received = 0;
  await withinLimit((finish) => {
    listener = (message) => {
      const nowMs = Date.now();
      for (let at = message.indexOf("at="); at >= 0; at = message.indexOf("at=", at + 3)) {
        const tookMs = nowMs - Number(message.toString("latin1", at + 3, at + 16));
        const index = Math.min(Math.max(tookMs, 0), LONGEST_LATENCY_MS);
        countByMs[index] = (countByMs[index] ?? 0) + 1;
        received += 1;
      }
      if (received >= eventsEach * watchers) finish();
    };
  });
  return { received, wrong: 0, resumed: 0, countByMs };
}

async function release() {
  listener = () => {};
  for (const connection of held.splice(0)) connection.close();
  return { received: 0, wrong: 0, resumed: 0, countByMs: [] };
}

let watching = 0;
answerOrders<WatchOrder, WatchOutcome>(async (order) => {
  const start = performance.now();
  const carryOut = () => {
    switch (order.kind) {
      case "catch-up":
        return catchUp(order);
      case "validate":
        return validate(order);
      case "hold":
        watching = order.watchers;
        return hold(order);
      case "listen":
        return listen(order, watching);
      case "release":
        return release();
    }
  };
  const outcome = await carryOut();
  return { ...outcome, elapsedMs: performance.now() - start };
});
