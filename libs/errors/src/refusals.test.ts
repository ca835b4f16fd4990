import { describe, expect, it } from "@jest/globals";
import { PreconditionFailureSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { describeError } from "./errors.ts";
import { refusalError, refuseFields } from "./refusals.ts";

describe("refusalError()", () => {
  it("should say on what a precondition failed", () => {
    const refusal = {
      reason: "NODE_ALREADY_APPROVED",
      message: "node n1 already approved",
      metadata: { node: "n1" },
    } as const;
    const error = refusalError(refusal, "n1");
    expect(describeError(error)).toMatchObject(refusal);
    expect(error.findDetails(PreconditionFailureSchema)[0]?.violations).toMatchObject([
      { type: "NODE_ALREADY_APPROVED", subject: "n1" },
    ]);
  });

  it("should name no precondition where none failed", () => {
    const error = refusalError({ reason: "NODE_NOT_FOUND", message: "no", metadata: {} }, "n1");
    expect(error.findDetails(PreconditionFailureSchema)).toEqual([]);
  });
});

describe("refuseFields()", () => {
  it("should tell every violation, to people and to programs", () => {
    const violations = [
      { field: "a", description: "too long" },
      { field: "b", description: "too short" },
    ];
    expect(describeError(refuseFields("INVALID_LABEL", violations))).toMatchObject({
      reason: "INVALID_LABEL",
      message: "a: too long; b: too short",
      violations,
    });
  });
});
