import { describe, expect, it } from "@jest/globals";
import { createTestDatabase } from "@rollcall/testkit";
import { loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { callLimits, evaluateProxies } from "./open-guards.ts";

describe("callLimits()", () => {
  it("should leave half of the connections that the process has to other callers, whatever is configured", async () => {
    const database = await createTestDatabase();
    try {
      const shell = { env: {}, cwd: "/" };
      const flags = { "Database.PoolSize": "100" };
      const { values } = await loadControlPlaneConfig({ shell, file: undefined, flags });
      const [calls] = database.store.use().filter(({ lane }) => lane === "calls");
      const size = calls?.size ?? 0;
      expect(size).toBeGreaterThan(1);
      expect(size).toBeLessThan(100);
      expect(callLimits(values, database.store).callerWork).toBe(Math.floor(size / 2));
    } finally {
      await database.drop();
    }
  });
});

describe("evaluateProxies()", () => {
  const evaluate = evaluateProxies(["10.0.0.7", "192.168.0.0/16", "::1", "2001:db8::/32"]);

  it.each([
    ["10.0.0.7", "proxy"],
    ["10.0.0.8", "other"],
    // An IPv4 address as reported by a socket that listens on :: for IPv4 and IPv6.
    ["::ffff:10.0.0.7", "proxy"],
    ["::ffff:10.0.0.8", "other"],
    ["192.168.255.1", "proxy"],
    ["192.169.0.1", "other"],
    ["::1", "proxy"],
    ["127.0.0.1", "other"],
    ["2001:db8:ffff::9", "proxy"],
    ["2001:DB8:0::9", "proxy"],
    ["2001:db9::9", "other"],
    ["10.0.0", "invalid"],
    ["10.0.0.256", "invalid"],
    ["unknown", "invalid"],
    ["", "invalid"],
  ])("should classify %s as %s", (host, evaluation) => {
    expect(evaluate(host)).toBe(evaluation);
  });

  it("should trust no proxy by default", () => {
    expect(evaluateProxies([])("127.0.0.1")).toBe("other");
  });
});
