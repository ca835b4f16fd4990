import { afterEach, describe, expect, it } from "@jest/globals";
import { createMetrics, gauge } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ManualClock } from "@rollcall/testkit/time";
import type { RunningServer } from "../server-options.ts";
import { createProbeServer, type ReadyCheck, shareRuns } from "./probe-server.ts";

let server: RunningServer;
afterEach(async () => await server.close());

async function get(ready: ReadyCheck, path: string, method = "GET") {
  const metrics = createMetrics({ defaults: false });
  gauge(metrics, { name: "agents", help: "held" }).set(3);
  const { log } = captureLog();
  server = await createProbeServer({
    host: "127.0.0.1",
    port: 0,
    ready,
    metrics,
    log,
    checkTimeoutMs: 50,
  });
  return await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
}

const fine: ReadyCheck = () => ({ store: { ok: true, message: "reached" } });

describe("createProbeServer()", () => {
  it("should be alive whatever it depends on", async () => {
    const response = await get(() => Promise.reject(new Error("no store")), "/livez");
    expect([response.status, await response.text()]).toEqual([200, "ok\n"]);
  });

  it("should be ready when every check is ok", async () => {
    const response = await get(fine, "/readyz?verbose");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      ready: true,
      checks: { store: { ok: true, message: "reached" } },
    });
  });

  it("should not be ready when one check fails, and name it", async () => {
    const checks = {
      store: { ok: true, message: "reached" },
      lease: { ok: false, message: "not held" },
    };
    const response = await get(async () => checks, "/readyz");
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({ ready: false, checks });
  });

  it.each([
    ["throws", () => Promise.reject(new Error("password wrong"))],
    ["hangs", () => new Promise<never>(() => {})],
  ] as const)("should not be ready when a check %s", async (_, ready) => {
    const response = await get(ready, "/readyz");
    expect(response.status).toBe(503);
    expect(await response.text()).not.toContain("password");
  });

  it("should serve metrics as Prometheus reads them", async () => {
    const response = await get(fine, "/metrics");
    expect(response.headers.get("content-type")).toContain("text/plain");
    expect(await response.text()).toContain("agents 3");
  });

  it("should answer HEAD without a body, and refuse other methods", async () => {
    const head = await get(fine, "/livez", "HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
    await server.close();
    expect((await get(fine, "/livez", "POST")).status).toBe(405);
    await server.close();
    expect((await get(fine, "/")).status).toBe(404);
  });
});

/**
 * Create shared runs that do not end until the test ends them. Returns how to start
 * and end them.
 */
function heldRuns() {
  const ends: ((outcome: string) => void)[] = [];
  const failures: ((error: Error) => void)[] = [];
  const clock = new ManualClock();
  const shared = shareRuns(
    () =>
      new Promise<string>((resolve, reject) => {
        ends.push(resolve);
        failures.push(reject);
      }),
    clock,
  );
  return { clock, ends, failures, shared };
}

/** Wait until everything that can continue has done so. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("shareRuns()", () => {
  it("should run once for all callers during a run, after that run", async () => {
    const { ends, shared } = heldRuns();
    const first = shared();
    const others = [shared(), shared(), shared()];
    expect(ends).toHaveLength(1);
    ends[0]?.("first");
    expect(await first).toBe("first");
    await settled();
    expect(ends).toHaveLength(2);
    ends[1]?.("second");
    expect(await Promise.all(others)).toEqual(["second", "second", "second"]);
    await settled();
    void shared();
    expect(ends).toHaveLength(3);
  });

  it("should rest after a run, longer after a longer one", async () => {
    const { clock, ends, shared } = heldRuns();
    const first = shared();
    clock.advance(10);
    ends[0]?.("first");
    await first;
    await settled();
    const others = [shared(), shared()];
    clock.advance(39);
    await settled();
    expect(ends).toHaveLength(1);
    clock.advance(1);
    await settled();
    expect(ends).toHaveLength(2);
    ends[1]?.("second");
    expect(await Promise.all(others)).toEqual(["second", "second"]);
  });

  it("should rest for a bounded time", async () => {
    const { clock, ends, shared } = heldRuns();
    const first = shared();
    clock.advance(60_000);
    ends[0]?.("first");
    await first;
    void shared();
    await settled();
    clock.advance(200);
    await settled();
    expect(ends).toHaveLength(2);
  });

  it("should report a failure to the callers of that run, and continue", async () => {
    const { ends, failures, shared } = heldRuns();
    const first = shared();
    const second = shared();
    failures[0]?.(new Error("broken"));
    await expect(first).rejects.toThrow("broken");
    await settled();
    ends[1]?.("well");
    expect(await second).toBe("well");
  });
});
