import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { hostname } from "node:os";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import { listLeases } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { advertisedHost } from "./create-services.ts";
import { openProbes, type Probes } from "./open-probes.ts";
import { planUp } from "./process-plan.ts";
import { startControlPlane } from "./start-control-plane.ts";

const FREE_PORTS = { port: "0", "agent-port": "0", "probe-port": "0", "internal-port": "0" };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

let probes: Probes | undefined;
afterEach(async () => {
  await probes?.close();
  probes = undefined;
});

async function start(flags: Record<string, string>, signal = new AbortController().signal) {
  const shell = { env: {}, cwd: "/" };
  const { values } = await loadControlPlaneConfig({ shell, file: undefined, flags });
  const { store } = database;
  const plan = planUp(values);
  const shared = { plan, clock: systemClock, log: silentLogger };
  probes = await openProbes(shared);
  const options = { ...shared, config: values, store, probes, version: "9.9.9" };
  return startControlPlane(options, signal);
}

function leases() {
  return listLeases(database.store.db);
}

describe("startControlPlane()", () => {
  it("should hold its lease once started, and release it when closed", async () => {
    const running = await start(FREE_PORTS);
    expect(await leases()).toContainEqual(expect.objectContaining({ service: "up" }));
    const ready = await fetch(`http://127.0.0.1:${probes?.port}/readyz`);
    expect(ready.status).toBe(200);
    await running.close();
    expect(await leases()).toEqual([]);
  });

  it.each(["port", "agent-port", "probe-port", "internal-port"])(
    "should end what it had started when --%s is in use",
    async (flag) => {
      const holder = createServer().listen(0, "127.0.0.1");
      await once(holder, "listening");
      const { port } = holder.address() as AddressInfo;
      await expect(start({ ...FREE_PORTS, [flag]: String(port) })).rejects.toThrow(/EADDRINUSE|No address added/);
      holder.close();
      expect(await leases()).toEqual([]);
    },
  );

  it("should end what it had started when it is asked to end during startup", async () => {
    await expect(start(FREE_PORTS, AbortSignal.abort(new Error("told to")))).rejects.toThrow("told to");
    expect(await leases()).toEqual([]);
  });
});

describe("advertisedHost()", () => {
  it.each([
    ["10.0.0.7", "10.0.0.7"],
    ["rollcall.example", "rollcall.example"],
    ["::1", "[::1]"],
    ["2001:db8::7", "[2001:db8::7]"],
    ["::", hostname()],
  ])("should write %s as %s", async (host, expected) => {
    const shell = { env: {}, cwd: "/" };
    const { values } = await loadControlPlaneConfig({ shell, file: undefined, flags: {} });
    expect(advertisedHost({ host }, values)).toBe(expected);
  });
});
