import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { PreconditionFailureSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { ErrorReason, ErrorReasonSchema } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
import { refusalError, refuse, refuseFields } from "./refusal-error.ts";
import { describeError, reasonOf, toConnectError } from "./wire-error.ts";

describe("CODE_OF_REASON", () => {
  const names = Object.keys(ErrorReason).filter((name) => name !== "UNSPECIFIED");

  it("should have a row for each reason of the API, and no other", () => {
    expect(Object.keys(CODE_OF_REASON).sort()).toEqual([...names].sort());
    expect(ErrorReasonSchema.values).toHaveLength(names.length + 1);
  });

  it("should never map a reason to success or to an unknown code", () => {
    for (const code of Object.values(CODE_OF_REASON)) {
      expect(Code[code]).toBeDefined();
      expect(code).not.toBe(Code.Unknown);
    }
  });
});

describe("refuse()", () => {
  it.each(Object.entries(CODE_OF_REASON))("should make %s with code %i", (reason, code) => {
    const error = refuse(reason as ErrorReasonName, "text", { metadata: { node: "n1" } });
    expect(reasonOf(error)).toBe(reason);
    expect(describeError(error)).toEqual({
      code,
      message: "text",
      reason,
      metadata: { node: "n1" },
      retryAfterMs: undefined,
      violations: [],
    });
  });

  it("should carry violations, retry time and subject as google.rpc details", () => {
    const violations = [{ field: "node_id", description: "must not be empty" }];
    const error = refuse("INVALID_REQUEST", "invalid", { violations, retryAfterMs: 1_500.2 });
    expect(describeError(error)).toMatchObject({ violations, retryAfterMs: 1_501 });
    const failed = toConnectError(refuse("NODE_ALREADY_APPROVED", "node n1 is already approved", { subject: "n1" }));
    expect(failed.details.map((it) => ("desc" in it ? it.desc.typeName : it.type))).toEqual([
      "google.rpc.ErrorInfo",
      "google.rpc.PreconditionFailure",
    ]);
  });

  it("should have no half of a surrogate pair, which cannot be sent", () => {
    const error = refuse("INVALID_REQUEST", "a\ud800b \u{1f4be}", { metadata: { node: "\udc00" } });
    expect(describeError(error)).toMatchObject({
      message: "a\ufffdb \u{1f4be}",
      metadata: { node: "\ufffd" },
    });
  });

  it("should leave out no violation that fits", () => {
    const violations = Array.from({ length: 40 }, (_, index) => ({
      field: `labels["key-${index}"]`,
      description: "must be a label's value",
    }));
    expect(describeError(refuse("INVALID_LABEL", "no", { violations })).violations).toEqual(violations);
  });
});

describe("reasonOf()", () => {
  it("should be undefined for foreign and newer errors", () => {
    expect(reasonOf(new Error("plain"))).toBeUndefined();
    expect(reasonOf(undefined)).toBeUndefined();
    expect(reasonOf(new ConnectError("x", Code.NotFound))).toBeUndefined();
    const newer = toConnectError(refuse("INTERNAL", "x"));
    const [detail] = newer.details;
    if (detail === undefined || !("desc" in detail)) throw new Error("no detail");
    newer.details = [{ ...detail, value: { ...detail.value, reason: "FROM_THE_FUTURE" } }];
    expect(reasonOf(newer)).toBeUndefined();
    expect(describeError(newer).reason).toBe("FROM_THE_FUTURE");
    expect(isErrorReasonName("toString")).toBe(false);
  });
});

describe("refusalError()", () => {
  it("should name the subject of a failed precondition", () => {
    const refusal = {
      reason: "NODE_ALREADY_APPROVED",
      message: "node n1 is already approved",
      metadata: { node: "n1" },
    } as const;
    const error = refusalError(refusal, "n1");
    expect(describeError(error)).toMatchObject(refusal);
    expect(toConnectError(error).findDetails(PreconditionFailureSchema)[0]?.violations).toMatchObject([
      { type: "NODE_ALREADY_APPROVED", subject: "n1" },
    ]);
  });

  it("should name no precondition if none failed", () => {
    const error = refusalError({ reason: "NODE_NOT_FOUND", message: "no", metadata: {} }, "n1");
    expect(toConnectError(error).findDetails(PreconditionFailureSchema)).toEqual([]);
  });
});

describe("refuseFields()", () => {
  it("should report every violation, to people and to programs", () => {
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
