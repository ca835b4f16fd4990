import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  deriveScheduling,
  effectiveHealth,
  type Health,
  type HealthState,
  type Hold,
  hasStatus,
  liftHold,
  placeHold,
} from "./states.ts";

const hold: Hold = { kind: "OPERATOR", sinceMs: 100, message: "new disk", actor: "token:ops" };

function stated<State extends string>(state: State) {
  return { state, sinceMs: 1, reason: "TEST", message: "", actor: "system" };
}

describe("deriveScheduling()", () => {
  it("should be eligible without a hold", () => {
    expect(deriveScheduling([], 7)).toEqual({
      state: "ELIGIBLE",
      sinceMs: 7,
      reason: "NO_HOLD",
      message: "",
      actor: "system",
      holds: [],
    });
  });

  it("should carry when, why and by whom it was held", () => {
    expect(deriveScheduling([hold], 7)).toEqual({
      state: "INELIGIBLE",
      sinceMs: 100,
      reason: "OPERATOR_CORDONED",
      message: "new disk",
      actor: "token:ops",
      holds: [hold],
    });
  });

  it("should take its reason from the oldest hold", () => {
    const older = { ...hold, sinceMs: 50, message: "older" };

    const scheduling = deriveScheduling([hold, older], 7);

    expect(scheduling).toMatchObject({ sinceMs: 50, message: "older", holds: [older, hold] });
  });
});

describe("placeHold()", () => {
  it("should add a hold", () => {
    expect(placeHold([], hold)).toEqual([hold]);
  });

  it("should keep since when a node is held when the same kind is placed again", () => {
    const again = { ...hold, sinceMs: 900, message: "still", actor: "token:other" };

    expect(placeHold([hold], again)).toEqual([{ ...again, sinceMs: 100 }]);
  });

  it("should return the same array when nothing changes", () => {
    const holds = [hold];

    expect(placeHold(holds, { ...hold, sinceMs: 900 })).toBe(holds);
  });
});

describe("liftHold()", () => {
  it("should remove the hold of the kind", () => {
    expect(liftHold([hold], "OPERATOR")).toEqual([]);
  });

  it("should return the same array when there is none", () => {
    const holds: readonly Hold[] = [];

    expect(liftHold(holds, "OPERATOR")).toBe(holds);
  });

  it("should undo placing a hold, whatever is placed in between", () => {
    const anyHold = fc.record({
      kind: fc.constant("OPERATOR" as const),
      sinceMs: fc.nat(),
      message: fc.string(),
      actor: fc.string(),
    });
    fc.assert(
      fc.property(fc.array(anyHold), (placed) => {
        const holds = placed.reduce<readonly Hold[]>(placeHold, []);
        expect(holds.length).toBe(Math.min(placed.length, 1));
        expect(deriveScheduling(liftHold(holds, "OPERATOR"), 0).state).toBe("ELIGIBLE");
      }),
    );
  });
});

describe("effectiveHealth()", () => {
  const mark = { sinceMs: 5, message: "burning", actor: "token:ops" };

  it("should be the detected health without a mark", () => {
    const detected: Health = stated("HEALTHY");

    expect(effectiveHealth(detected, null)).toBe(detected);
  });

  it.each<HealthState>(["HEALTHY", "UNHEALTHY", "UNKNOWN"])(
    "should be UNHEALTHY with a mark, whatever was detected: %s",
    (detected) => {
      expect(effectiveHealth(stated(detected), mark)).toEqual({
        state: "UNHEALTHY",
        sinceMs: 5,
        reason: "OPERATOR_MARKED",
        message: "burning",
        actor: "token:ops",
      });
    },
  );
});

describe("hasStatus()", () => {
  const connected = { connection: stated("CONNECTED"), health: stated("HEALTHY") } as const;

  it("should find any node by its connection", () => {
    for (const type of ["COMPUTE", "ORCHESTRATOR"] as const) {
      expect(hasStatus({ type, ...connected }, "CONNECTED")).toBe(true);
      expect(hasStatus({ type, ...connected }, "DISCONNECTED")).toBe(false);
    }
  });

  it("should find only compute nodes by their health", () => {
    expect(hasStatus({ type: "COMPUTE", ...connected }, "HEALTHY")).toBe(true);
    expect(hasStatus({ type: "COMPUTE", ...connected }, "UNKNOWN")).toBe(false);
    expect(hasStatus({ type: "ORCHESTRATOR", ...connected }, "HEALTHY")).toBe(false);
  });
});
