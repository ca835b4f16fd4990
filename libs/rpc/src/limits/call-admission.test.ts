import { describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { createMetrics } from "@rollcall/process";
import { TestCounts } from "../../test/test-counts.ts";
import { CallAdmission } from "./call-admission.ts";

describe("CallSlot", () => {
  it("should get no turn to work once it was released", async () => {
    const counts = new TestCounts({});
    const admission = new CallAdmission({ counts, metrics: createMetrics({ defaults: false }) });
    const call = { needs: "viewer", isStream: false, peer: "192.0.2.1:1" } as const;
    const place = admission.enter({ ...call, authorization: "Bearer x" });
    place.leave();
    const error = await place.turn(new AbortController().signal, 1_000).catch((it: unknown) => it);
    expect(reasonOf(error)).toBe("CANCELLED");
  });
});
