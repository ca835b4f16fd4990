import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSpecSchema, type JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { firstJob } from "./job-fields.ts";
import { isWhole, jobText, parseJobText } from "./job-text.ts";

describe("parseJobText()", () => {
  it("should read what jobText() wrote", () => {
    expect(jobText(firstJob())).toMatch(/^name: my-job\ntype: service\n/);
    expect(parseJobText(jobText(firstJob()), "my-job")).toEqual({ ok: true, spec: firstJob() });
    expect(isWhole(firstJob())).toBe(true);
  });

  it.each([
    ["is not YAML", "name: [", /^line \d+: /],
    ["has an unknown key", "name: a\ntype: batch\ncout: 2\nprocess: {command: [a]}", /^line 3: .*cout.*count/],
    ["has no name", "type: batch\nprocess: {command: [a]}", /name/],
    ["has the name of another job", "name: b\ntype: batch\nprocess: {command: [a]}", /^name must stay "a"/],
    ["has two jobs", `${jobText(firstJob())}---\nname: b\ntype: batch\nprocess: {command: [a]}`, /2 jobs/],
  ])("should say what is wrong with a text that %s", (_, text, message) => {
    expect(parseJobText(text, "a")).toEqual({ ok: false, message: expect.stringMatching(message) });
  });
});

describe("isWhole()", () => {
  it("should find a job that a file cannot express", () => {
    expect(isWhole(create(JobSpecSchema, { name: "a", type: 99 as JobType }))).toBe(false);
  });
});
