import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import type { CallStore } from "../database/store.ts";
import { EventFeed } from "./feed.ts";
import { CallLogReader } from "./log-reader.ts";

const [clock, log] = [systemClock, silentLogger];
const { signal } = new AbortController();

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function append(): Promise<bigint> {
  const event = { type: "node.labels.changed", subject: "n1", actor: "t", reason: "", message: "" } as const;
  const { revision } = await database.store.change(async () => ({
    result: null,
    events: [{ ...event, before: {}, after: {} }],
  }));
  return revision;
}

/** Create a reader that counts its queries to the database. */
function countingReader() {
  const { store } = database;
  let reads = 0;
  let logId = store.logId();
  const counting: CallStore = {
    ...store,
    logId: () => logId,
    get db() {
      reads += 1;
      return store.db;
    },
  };
  const feed = new EventFeed({ store: store.reserved, clock, log });
  const reader = new CallLogReader({ store: counting, feed, clock });
  return { feed, reader, reads: () => reads, replaceLog: () => (logId = "another") };
}

describe("CallLogReader", () => {
  it("should query the database only beyond the known end, and once for all concurrent callers", async () => {
    const { feed, reader, reads } = countingReader();
    const head = await append();
    expect(await Promise.all([1n, head, head + 1n].map((revision) => reader.end(revision)))).toEqual([
      head,
      head,
      head,
    ]);
    expect(reads()).toBe(1);
    expect(await reader.end(head)).toBe(head);
    reader.noteEnd(head + 5n);
    reader.noteEnd(head);
    expect(await reader.end(head + 5n)).toBe(head + 5n);
    expect(reads()).toBe(1);
    expect(await reader.end(head + 6n)).toBe(head);
    await feed.close();
  });

  it("should forget its known end when the log was replaced", async () => {
    const { feed, reader, reads, replaceLog } = countingReader();
    reader.noteEnd(1_000_000n);
    replaceLog();
    expect(await reader.end(1_000_000n)).toBeLessThan(1_000_000n);
    expect(reads()).toBe(1);
    await feed.close();
  });

  it("should have read nothing of a log that replaces the one that it has read", async () => {
    const { feed, reader, replaceLog } = countingReader();
    const head = await append();
    await reader.caughtUpTo(head, signal);
    replaceLog();
    const { position } = reader;
    await feed.close();
    expect(position).toBe(0n);
  });

  it("should start the feed for the first waiting caller, and know what it has read", async () => {
    const { feed, reader, reads } = countingReader();
    const head = await append();
    expect(reader.position).toBe(0n);
    await reader.caughtUpTo(head, signal);
    expect(reader.position).toBe(head);
    expect(await reader.end(head)).toBe(head);
    expect(reads()).toBe(0);
    const over = AbortSignal.abort(new Error("over"));
    await expect(reader.caughtUpTo(head + 1n, over)).rejects.toThrow("over");
    await feed.close();
  });
});
