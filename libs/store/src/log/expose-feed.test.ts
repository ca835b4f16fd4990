import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics, silentLogger } from "@rollcall/process";
import { appendEvents, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { exposeFeed } from "./expose-feed.ts";
import { EventFeed, type FollowerLag } from "./feed.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe("exposeFeed()", () => {
  it("should report the furthest-behind follower of each name, and drop those that left", async () => {
    const metrics = createMetrics({ defaults: false });
    let lags: readonly FollowerLag[] = [
      { name: "health", revisions: 0, sinceEndMs: 500 },
      { name: "job_watches", revisions: 3, sinceEndMs: 100 },
      { name: "job_watches", revisions: 1, sinceEndMs: 2_500 },
    ];
    exposeFeed(metrics, { lags: () => lags });
    const text = await renderMetrics(metrics);
    expect(text).toContain('rollcall_feed_lag_seconds{follower="health"} 0.5');
    expect(text).toContain('rollcall_feed_lag_revisions{follower="job_watches"} 3');
    expect(text).toContain('rollcall_feed_lag_seconds{follower="job_watches"} 2.5');
    lags = [];
    expect(await renderMetrics(metrics)).not.toContain("follower=");
  });
});

describe("EventFeed.lags()", () => {
  it("should return how far each follower is behind", async () => {
    const { store } = database;
    const event = { type: "node.registered", subject: "n1", actor: "system", reason: "TESTED", message: "" } as const;
    const both = [event, event].map((it) => ({ ...it, before: null, after: null }));
    const head = await store.transaction((tx) => appendEvents(tx, both));
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    feed.follow({ deliver: () => {} });
    await feed.start(head);
    const late = feed.follow({ name: "late", after: head - 2n, deliver: () => {} });
    const revisionsBehind = () => Object.fromEntries(feed.lags().map(({ name, revisions }) => [name, revisions]));
    expect(revisionsBehind()).toEqual({ other: 0, late: 2 });
    await late.caughtUp;
    expect(revisionsBehind()).toEqual({ other: 0, late: 0 });
    late.leave();
    expect(feed.lags().map(({ name }) => name)).toEqual(["other"]);
    await feed.close();
  });
});
