import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  autoRevertTo,
  decideRevert,
  type JobVersionHead,
  refuseJobDeletion,
  refuseJobEdit,
  refusesRestart,
  revertedCount,
} from "./edit-job.ts";
import type { JobState } from "./job.ts";

describe("refuseJobEdit()", () => {
  it.each<[JobState, string | null]>([
    ["ACTIVE", null],
    ["STOPPED", "JOB_STOPPED"],
    ["COMPLETED", "JOB_ENDED"],
    ["FAILED", "JOB_ENDED"],
  ])("should answer for a job that is %s: %s", (state, refusal) => {
    expect(refuseJobEdit(state)).toBe(refusal);
  });
});

describe("refuseJobDeletion()", () => {
  it.each([
    ["ACTIVE", 0, "JOB_ACTIVE"],
    ["ACTIVE", 3, "JOB_ACTIVE"],
    ["STOPPED", 1, "JOB_NOT_ENDED"],
    ["STOPPED", 0, null],
    ["COMPLETED", 0, null],
    ["FAILED", 2, "JOB_NOT_ENDED"],
  ] as const)("should decide about a job that is %s with %i executions left", (state, open, expected) => {
    expect(refuseJobDeletion(state, open)).toBe(expected);
  });
});

describe("refusesRestart()", () => {
  const HALTED = { halted: "it failed", version: 3, readyVersion: 1, sameVersions: [] };
  it.each([
    ["an update that halted", HALTED, true],
    ["an update that halted before any version was ready", { ...HALTED, readyVersion: null }, true],
    ["an update that continues", { ...HALTED, halted: null }, false],
    ["a restart of the version that is ready, which halted", { ...HALTED, readyVersion: 3 }, false],
    ["a revert to the version that was ready, which halted", { ...HALTED, sameVersions: [1] }, false],
  ])("should answer for %s", (_, job, expected) => {
    expect(refusesRestart(job)).toBe(expected);
  });
});

function head(version: number, wasReady: boolean, origin = version): JobVersionHead {
  return { version, wasReady, origin };
}

describe("decideRevert()", () => {
  const READY = [head(1, true), head(2, true), head(3, false)];
  it.each([
    ["the version that is named", 3, READY, 1, { ok: true, to: READY[0], sameVersions: [1] }],
    ["a version that never became ready, if it is named", 4, [...READY, head(4, true)], 3, { ok: true, to: READY[2] }],
    ["the last one that became ready", 3, READY, null, { ok: true, to: READY[1] }],
    ["no copy of the newest one", 3, [head(1, true), head(2, true), head(3, true, 2)], null, { to: head(1, true) }],
    [
      "all that have the specification",
      3,
      [head(1, true), head(2, true, 1), head(3, true)],
      1,
      { sameVersions: [2, 1] },
    ],
    ["not the newest one", 3, READY, 3, { ok: false, refusal: "IS_NEWEST", origin: 3 }],
    [
      "not a copy of the newest one",
      3,
      [head(1, true), head(3, true, 1)],
      1,
      { ok: false, refusal: "IS_NEWEST", origin: 1 },
    ],
    ["no version that is not kept", 3, READY, 9, { ok: false, refusal: "UNKNOWN_VERSION", kept: [3, 2, 1] }],
    [
      "none without a version that became ready",
      2,
      [head(1, false), head(2, false)],
      null,
      { ok: false, refusal: "NONE_READY" },
    ],
  ])("should choose %s", (_, newest, kept, wanted, expected) => {
    expect(decideRevert(newest, kept, wanted)).toMatchObject(expected);
  });

  it("should always change the specification, to one that is kept", () => {
    const heads = fc.uniqueArray(fc.record({ version: fc.nat(20), wasReady: fc.boolean(), origin: fc.nat(20) }), {
      selector: ({ version }) => version,
      minLength: 1,
    });
    fc.assert(
      fc.property(heads, fc.option(fc.nat(20)), (kept, wanted) => {
        const newest = Math.max(...kept.map(({ version }) => version));
        const decision = decideRevert(newest, kept, wanted);
        if (!decision.ok) return;
        const { to, sameVersions } = decision;
        expect(kept).toContainEqual(to);
        expect(to.origin).not.toBe(kept.find(({ version }) => version === newest)?.origin);
        expect(sameVersions).toContain(to.version);
        expect(sameVersions).not.toContain(newest);
      }),
    );
  });
});

describe("revertedCount()", () => {
  it.each([
    ["the earlier version asks for", { present: 30, submitted: 30, reverted: 3 }, 3],
    ["the job was scaled to", { present: 10, submitted: 3, reverted: 3 }, 10],
    ["the job was scaled to, none included", { present: 0, submitted: 3, reverted: 3 }, 0],
  ])("should want as many executions as %s", (_, counts, expected) => {
    expect(revertedCount(counts)).toBe(expected);
  });
});

describe("autoRevertTo()", () => {
  const HALTED: Parameters<typeof autoRevertTo>[0] = {
    ...{ state: "ACTIVE", halted: "it failed", version: 3, readyVersion: 1 },
    spec: { update: { autoRevert: true } },
  };
  it.each([
    ["an update that halted", HALTED, 1],
    ["an update that continues", { ...HALTED, halted: null }, null],
    ["a policy that does not ask for it", { ...HALTED, spec: { update: { autoRevert: false } } }, null],
    ["a job that was stopped", { ...HALTED, state: "STOPPED" as const }, null],
    ["a job of which no version became ready", { ...HALTED, readyVersion: null }, null],
    ["a restart of the version that became ready", { ...HALTED, readyVersion: 3 }, null],
    ["a copy of the version that became ready", { ...HALTED, sameVersions: [1] }, null],
    ["a version that undid another one", { ...HALTED, undone: 2 }, null],
  ])("should decide about %s", (_, job, expected) => {
    expect(autoRevertTo(job)).toBe(expected);
  });
});
