import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { compactEvents, currentRevision } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { captureLog } from "@rollcall/testkit/log-capture";
import { makeHistory } from "../testing/record.ts";
import { LogReader } from "./log-reader.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

function setUp() {
  const { log, lines } = captureLog();
  const metrics = createMetrics({ defaults: false });
  const reader = new LogReader(database.store.reserved, log, metrics);
  const lost = async () => {
    const text = await renderMetrics(metrics);
    return Number(/^rollcall_events_relay_lost_total (\d+)$/m.exec(text)?.[1] ?? 0);
  };
  return { reader, lines, lost };
}

describe("LogReader", () => {
  it("should report what was deleted before it was relayed, unless nothing ever was", async () => {
    const { store } = database;
    const logId = store.logId();
    const after = await currentRevision(store.db);
    await makeHistory(store, 10);
    const whole = setUp();
    expect((await whole.reader.read({ after, logId, isFirst: false }))?.events).toHaveLength(10);
    expect([await whole.lost(), whole.lines]).toEqual([0, []]);

    const compacted = await compactEvents(store, 0);
    const head = await currentRevision(store.db);
    const gone = setUp();
    const batch = await gone.reader.read({ after, logId, isFirst: false });
    expect(batch).toMatchObject({ events: [{ revision: head }], through: head });
    expect(compacted).toBeGreaterThanOrEqual(9);
    expect(await gone.lost()).toBe(Number(head - after) - 1);
    expect(gone.lines).toMatchObject([{ level: "error", from: `${after + 1n}`, through: `${head - 1n}` }]);

    const first = setUp();
    await first.reader.read({ after, logId, isFirst: true });
    expect([await first.lost(), first.lines[0]?.level]).toEqual([0, "info"]);
  });

  it("should read nothing for another log, or from an empty one", async () => {
    const { store } = database;
    await makeHistory(store, 1);
    const { reader } = setUp();
    expect(await reader.read({ after: 0n, logId: "another", isFirst: true })).toBeNull();
    const head = await currentRevision(store.db);
    const batch = await reader.read({ after: head, logId: store.logId(), isFirst: false });
    expect(batch).toEqual({ events: [], through: head });
  });
});
