import { describe, expect, it } from "@jest/globals";
import { MembershipState, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { NO_FILTER, nodeTest } from "./node-filter.ts";
import { amountText, exportedAmount } from "./node-row.ts";
import { testRow } from "./testing/test-rows.ts";

describe("amountText()", () => {
  it("should distinguish unknown GPUs from none", () => {
    const unknownFacts = [{ fact: "gpus", reason: "nvidia-smi gave no answer (too slow)" }];
    const gpus = [{ index: 0, uuid: "GPU-0" }];
    const texts = [{}, { gpus }, { unknownFacts }, { gpus, unknownFacts }].map((info) =>
      amountText(testRow("a", {}, { info }), "gpus", testRow("a", {}, { info }).gpus),
    );
    expect(texts).toEqual(["", "1", "unknown", "1 (last known)"]);
  });
});

describe("exportedAmount()", () => {
  it("should be empty for an amount that has never been known", () => {
    const unknownFacts = [{ fact: "memory_bytes" }];
    const amounts = [
      { memoryBytes: 0n },
      { unknownFacts, memoryBytes: undefined },
      { unknownFacts, memoryBytes: 5n },
    ].map((info) => {
      const row = testRow("a", {}, { info });
      return exportedAmount(row, "memory", row.memoryBytes);
    });
    expect(amounts).toEqual([0, "", 5]);
  });
});

describe("toRow()", () => {
  it("should not show a machine as eligible before it is approved", () => {
    const pending = testRow("a", {}, { membership: { state: MembershipState.PENDING } });
    expect(pending.scheduling.word).toBe("NOT_APPROVED");
    const filtered = nodeTest({ ...NO_FILTER, scheduling: ["ELIGIBLE"] });
    expect(filtered.ok && [testRow("b"), pending].filter(filtered.test).map(({ id }) => id)).toEqual(["b"]);
    const held = { membership: { state: MembershipState.PENDING }, scheduling: { state: SchedulingState.INELIGIBLE } };
    expect(testRow("c", {}, held).scheduling.word).toBe("INELIGIBLE");
  });
});
