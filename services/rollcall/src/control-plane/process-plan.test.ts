import { describe, expect, it } from "@jest/globals";
import { loadConfig } from "@rollcall/config";
import { PROCESS_KEYS } from "../config/process-keys.ts";
import { chooseServices, isBeyondLoopback, localAddress, planServe, planUp } from "./process-plan.ts";

const result = loadConfig({ keys: PROCESS_KEYS, flags: { "Listen.HealthPort": "8811" } });
if (!result.ok) throw new Error("the defaults must load");
const { values } = result.config;

describe("planUp()", () => {
  it("should run everything on the documented ports", () => {
    expect(planUp({ ...values, "Console.Enabled": true })).toEqual({
      name: "up",
      services: ["registry", "health", "admin", "scheduler", "console"],
      host: "127.0.0.1",
      port: 7700,
      probePort: 7790,
    });
  });

  it("should leave out the console if configured", () => {
    expect(planUp({ ...values, "Console.Enabled": false }).services).toEqual([
      "registry",
      "health",
      "admin",
      "scheduler",
    ]);
  });
});

describe("planServe()", () => {
  it.each([
    ["registry", 7710, 7791],
    ["health", 8811, 7792],
    ["admin", 7712, 7793],
    ["health-query", 8811, 7792],
    ["scheduler", 7713, 7794],
    ["console", 7700, 7795],
  ] as const)("should run %s alone on its own ports", (service, port, probePort) => {
    expect(planServe([service], values)).toEqual({
      name: service,
      services: [service],
      host: "127.0.0.1",
      port,
      probePort,
    });
  });
});

describe("planServe() of several", () => {
  it("should run them behind the ports of up", () => {
    const services = ["registry", "admin"] as const;
    const ports = { host: "127.0.0.1", port: 7700, probePort: 7790 };
    expect(planServe(services, values)).toEqual({ name: "api", services, ...ports });
  });
});

describe("chooseServices()", () => {
  it("should accept each once, in a fixed order", () => {
    const chosen = { ok: true, services: ["registry", "health-query", "admin", "scheduler"] };
    expect(chooseServices(["scheduler", "admin", "health-query", "registry"])).toEqual(chosen);
  });

  it.each([
    [[], "missing service"],
    [["registry", "pages"], "'pages' is not a service"],
    [["registry", "admin", "registry"], "'registry' is given twice"],
    [["health", "health-query"], "health includes health-query"],
  ])("should report what is wrong with %j", (words, problem) => {
    expect(chooseServices(words)).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });
});

describe("isBeyondLoopback()", () => {
  it.each([
    ["127.0.0.1", false],
    ["127.1.2.3", false],
    ["::1", false],
    ["localhost", false],
    ["0.0.0.0", true],
    ["::", true],
    ["10.0.0.5", true],
    ["127.evil.example", true],
  ])("should evaluate %s", (host, beyond) => {
    expect(isBeyondLoopback(host)).toBe(beyond);
  });
});

describe("localAddress()", () => {
  it.each([
    ["127.0.0.1", "127.0.0.1:7700"],
    ["0.0.0.0", "127.0.0.1:7700"],
    ["::", "[::1]:7700"],
    ["10.0.0.5", "10.0.0.5:7700"],
    ["fe80::1", "[fe80::1]:7700"],
  ])("should reach %s", (host, address) => {
    expect(localAddress(host, 7700)).toBe(address);
  });
});
