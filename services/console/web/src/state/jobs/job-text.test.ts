import { describe, expect, it } from "@jest/globals";
import { firstJob } from "./job-fields.ts";
import { jobText, parseJobText } from "./job-text.ts";

describe("parseJobText()", () => {
  it("should read what jobText() wrote", () => {
    const parsed = parseJobText(jobText(firstJob()), "my-job");
    expect(parsed.ok && jobText(parsed.spec)).toBe(jobText(firstJob()));
  });

  it.each([
    ["is not JSON", "{", /JSON/],
    ["has an unknown field", '{"name": "a", "cout": 2}', /cout/],
    ["has no name", "{}", /^name is missing$/],
    ["has the name of another job", '{"name": "b"}', /^name must stay "a"/],
  ])("should say what is wrong with a text that %s", (_, text, message) => {
    expect(parseJobText(text, "a")).toEqual({ ok: false, message: expect.stringMatching(message) });
  });
});
