import { describe, expect, it } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { formatResumeToken, LAST_REVISION, parseResumeToken } from "./resume-token.ts";

const LOG_ID = "0123abcd-4567-89ef-0123-456789abcdef";

describe("parseResumeToken()", () => {
  it.each([0n, 1n, 2n ** 40n, LAST_REVISION])("should read a token written at %s", (revision) => {
    const point = { kind: "position", logId: LOG_ID, revision } as const;
    const token = formatResumeToken(point);
    expect(token).toMatch(/^[\w-]{34}$/);
    expect(parseResumeToken(token)).toEqual(point);
  });

  it("should recognize a token from inside a snapshot", () => {
    const point = { kind: "snapshot", logId: LOG_ID, revision: 0n } as const;
    expect(parseResumeToken(formatResumeToken(point))).toEqual(point);
  });

  it.each(["", "1", "hello", "%%%", "A".repeat(34), "A".repeat(200)])("should refuse %j", (text) => {
    let refusal: unknown;
    try {
      parseResumeToken(text);
    } catch (error) {
      refusal = error;
    }
    expect(describeError(refusal)).toMatchObject({ reason: "INVALID_RESUME_TOKEN" });
  });
});
