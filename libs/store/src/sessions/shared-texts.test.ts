import { describe, expect, it } from "@jest/globals";
import { withSharedTexts } from "./shared-texts.ts";

describe("withSharedTexts()", () => {
  it("should return every text unchanged, however many and however long they are", () => {
    const all = Array.from({ length: 3_000 }, (_, index) => ({
      state: index % 2 === 0 ? "APPROVED" : "PENDING",
      sinceMs: index,
      reason: `REASON_${index}`,
      message: "x".repeat(index % 300),
      actor: `token:${index % 7}`,
    }));
    expect(all.map(withSharedTexts)).toEqual(all);
  });
});
