import { describe, expect, it } from "@jest/globals";
import { gpusText } from "./node-row.ts";
import { testRow } from "./testing/test-rows.ts";

describe("gpusText()", () => {
  it("should tell GPUs that are unknown from a node without any", () => {
    const unknownFacts = [{ fact: "gpus", reason: "nvidia-smi gave no answer (too slow)" }];
    const gpus = [{ index: 0, uuid: "GPU-0" }];
    const texts = [{}, { gpus }, { unknownFacts }, { gpus, unknownFacts }].map((info) =>
      gpusText(testRow("a", {}, { info })),
    );
    expect(texts).toEqual(["", "1", "unknown", "1 (last known)"]);
  });
});
