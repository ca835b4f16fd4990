import { afterEach, describe, expect, it } from "@jest/globals";
import { createMetrics, gauge } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import type { RunningServer } from "../connect/server-options.ts";
import { createProbeServer, type ReadyCheck } from "./probe-server.ts";

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

  it("should answer HEAD without a body, and refuse the rest", async () => {
    const head = await get(fine, "/livez", "HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
    await server.close();
    expect((await get(fine, "/livez", "POST")).status).toBe(405);
    await server.close();
    expect((await get(fine, "/")).status).toBe(404);
  });
});
