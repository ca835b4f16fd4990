import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics, silentLogger, systemClock } from "@rollcall/process";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import type { NewAuditEntry } from "../database/audit.ts";
import { listAudit } from "./audit-log.ts";
import { createRefusalRecorder, type RefusalRecorderOptions } from "./refusal-recorder.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function refusal(actor: string, target: string): NewAuditEntry {
  const method = "rollcall.test.v1.TestService/Do";
  return { actor, method, target, reason: "", outcome: "ROLE_TOO_LOW", address: "", requestId: "" };
}

function createRecorder(changes: Partial<RefusalRecorderOptions> = {}) {
  const metrics = createMetrics({ defaults: false });
  const { store } = database;
  const base = { store, clock: systemClock, log: silentLogger, metrics };
  return { metrics, recorder: createRefusalRecorder({ ...base, ...changes }) };
}

async function recordedOf(actor: string): Promise<readonly string[]> {
  const rows = await listAudit(database.store.db, { limit: 1_000, newestFirst: false, actor });
  return rows.map(({ target }) => target);
}

describe("createRefusalRecorder()", () => {
  it("should write all refusals, in order, before it is closed", async () => {
    const { recorder } = createRecorder();
    for (const target of ["a", "b", "c"]) recorder.record(refusal("token:1", target));
    await recorder.close();
    expect(await recordedOf("token:1")).toEqual(["a", "b", "c"]);
  });

  it("should limit the refusals of one caller, and write all of another", async () => {
    const { recorder, metrics } = createRecorder({ perActor: { perSecond: 0.001, burst: 2 } });
    for (const target of ["a", "b", "c", "d"]) recorder.record(refusal("token:2", target));
    recorder.record(refusal("token:3", "e"));
    await recorder.close();
    expect(await recordedOf("token:2")).toEqual(["a", "b"]);
    expect(await recordedOf("token:3")).toEqual(["e"]);
    expect(await renderMetrics(metrics)).toContain('rollcall_audit_refusals_left_out_total{cause="caller"} 2');
  });

  it("should not affect callers when the store is unavailable or the queue is full", async () => {
    const change = () => Promise.reject(new Error("the database is away"));
    const perActor = { perSecond: 1, burst: 5_000 };
    const { recorder, metrics } = createRecorder({ store: { lane: "calls", change }, perActor });
    for (let call = 0; call < 2_500; call += 1) recorder.record(refusal("token:4", "x"));
    await recorder.close();
    const text = await renderMetrics(metrics);
    const left = (cause: string) => Number(new RegExp(`left_out_total{cause="${cause}"} (\\d+)`).exec(text)?.[1] ?? 0);
    expect(left("queue")).toBeGreaterThan(0);
    expect(left("record") + left("queue")).toBe(2_500);
  });
});
