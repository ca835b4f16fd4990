import { describe, expect, it } from "@jest/globals";
import { type HealthCauses, shownHealth } from "./shown-health.ts";

const detected = {
  state: "HEALTHY",
  sinceMs: 1,
  reason: "HEARTBEAT_RECEIVED",
  message: "",
  actor: "replica:r",
} as const;
const machine = (bootId: string) => ({
  ...{ instanceId: "", bootId, fingerprint: "f", address: "10.0.0.1:1", atMs: 0, tookOver: true },
});

describe("shownHealth()", () => {
  const all: HealthCauses = {
    detected,
    mark: { sinceMs: 2, message: "smells", actor: "token:t" },
    machines: [machine("a"), machine("b")],
    conditions: [{ reason: "EXECUTORS_UNKNOWN", message: "no answer yet" }],
    troubles: [{ kind: "GPU_GONE", part: "gpu 0", message: "gone" }],
    hasRebooted: true,
  };
  it.each<[string, Partial<HealthCauses>, string, string]>([
    ["an operator's mark first", {}, "UNHEALTHY", "OPERATOR_MARKED"],
    ["then two machines with one identity", { mark: null }, "HEALTHY", "DUPLICATE_IDENTITY"],
    ["then the conditions that it reports", { mark: null, machines: null }, "HEALTHY", "EXECUTORS_UNKNOWN"],
    ["then what is wrong with the hardware", { mark: null, machines: null, conditions: [] }, "HEALTHY", "GPU_GONE"],
    ["then a reboot", { mark: null, machines: null, conditions: [], troubles: [] }, "HEALTHY", "UNEXPECTED_REBOOT"],
    [
      "else what was detected",
      { mark: null, machines: null, conditions: [], troubles: [], hasRebooted: false },
      "HEALTHY",
      "HEARTBEAT_RECEIVED",
    ],
  ])("should show %s", (_, changes, state, reason) => {
    expect(shownHealth({ ...all, ...changes })).toMatchObject({ state, reason });
  });
});
