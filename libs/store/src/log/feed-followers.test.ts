import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NewEvent } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { currentRevision } from "./events.ts";
import { EventFeed } from "./feed.ts";

let database: TestDatabase;
let feed: EventFeed;
beforeAll(async () => {
  database = await createTestDatabase();
  feed = new EventFeed({ store: database.store.reserved, log: silentLogger, batchSize: 1 });
});
afterAll(async () => {
  await feed.close();
  await database.drop();
});

async function append(...subjects: string[]): Promise<bigint> {
  const facts = { type: "node.registered", actor: "system", reason: "TESTED", message: "", before: null, after: null };
  const events = subjects.map((subject) => ({ ...facts, subject }) as NewEvent);
  return (await database.store.change(async () => ({ result: null, events }))).revision;
}

describe("a follower of the feed", () => {
  it("should signal when it has caught up, even if it started further back than the feed", async () => {
    const after = await currentRevision(database.store.db);
    await append("first", "second");
    await feed.start();
    const seen: string[] = [];
    const following = feed.follow({ after, deliver: (events) => seen.push(...events.map(({ subject }) => subject)) });
    const revision = await append("third");
    await following.caughtUpTo(revision);
    expect(seen).toEqual(["first", "second", "third"]);
    const never = following.caughtUpTo(revision + 1n);
    following.leave();
    await expect(never).rejects.toThrow("the follower has left");
  });
});

describe("a feed", () => {
  it("should check the history of the log again after a check failed, without a new connection", async () => {
    const { reserved } = database.store;
    let checks = 0;
    const refreshLogId = async () => {
      checks += 1;
      if (checks === 1) throw new Error("the store is away");
      return reserved.refreshLogId();
    };
    const checking = new EventFeed({ store: { ...reserved, refreshLogId }, log: silentLogger });
    try {
      await checking.start();
      await until("another check", () => checks > 1);
    } finally {
      await checking.close();
    }
  });
});
