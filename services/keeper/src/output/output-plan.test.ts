import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { endOf, type OutputFile, planAppend, planRead } from "./output-plan.ts";

describe("planAppend()", () => {
  it("should fill files up to their size, and keep the newest", () => {
    const files = [
      { start: 0, bytes: 10 },
      { start: 10, bytes: 8 },
    ];
    const { files: after, actions } = planAppend(files, 5, { maxFileBytes: 10, maxFiles: 2 });
    expect(actions).toEqual([
      { kind: "append", start: 10, from: 0, to: 2 },
      { kind: "remove", start: 0 },
      { kind: "append", start: 20, from: 2, to: 5 },
    ]);
    expect(after).toEqual([
      { start: 10, bytes: 10 },
      { start: 20, bytes: 3 },
    ]);
  });

  it("should write every byte once, within its limits", () => {
    const rules = fc.record({
      maxFileBytes: fc.integer({ min: 1, max: 20 }),
      maxFiles: fc.integer({ min: 1, max: 4 }),
    });
    fc.assert(
      fc.property(rules, fc.array(fc.nat(50)), (limits, chunks) => {
        let files: readonly OutputFile[] = [];
        let written = 0;
        for (const bytes of chunks) {
          const step = planAppend(files, bytes, limits);
          const appended = step.actions.flatMap((one) => (one.kind === "append" ? [one.to - one.from] : []));
          expect(appended.reduce((sum, one) => sum + one, 0)).toBe(bytes);
          files = step.files;
          written += bytes;
          expect(endOf(files)).toBe(written);
          expect(files.length).toBeLessThanOrEqual(limits.maxFiles);
          expect(files.every((file) => file.bytes <= limits.maxFileBytes)).toBe(true);
        }
      }),
    );
  });
});

describe("planRead()", () => {
  const files = [
    { start: 10, bytes: 10 },
    { start: 20, bytes: 3 },
  ];

  it.each([
    [0, 100, { start: 10, position: 0, bytes: 10 }],
    [12, 4, { start: 10, position: 2, bytes: 4 }],
    [20, 100, { start: 20, position: 0, bytes: 3 }],
    [23, 100, null],
  ])("should read from %i at most %i bytes", (offset, limit, plan) => {
    expect(planRead(files, offset, limit)).toEqual(plan);
  });
});
