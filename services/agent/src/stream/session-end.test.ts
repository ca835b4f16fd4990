import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GoAwayAction, GoAwaySchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { refuse } from "@rollcall/errors";
import { toGrpcStatus } from "@rollcall/testkit/grpc-status";
import { toDuration } from "./hello.ts";
import { endOfGoAway, endOfStatus } from "./session-end.ts";

describe("endOfGoAway()", () => {
  it("should read reason, text, time and action", () => {
    const goAway = create(GoAwaySchema, {
      reason: ErrorReason.NODE_REJECTED,
      message: "node has been rejected: spare parts",
      retryAfter: toDuration(1_500),
      action: GoAwayAction.REGISTER,
    });
    expect(endOfGoAway(goAway)).toEqual({
      kind: "refused",
      reason: "NODE_REJECTED",
      message: "node has been rejected: spare parts",
      retryAfterMs: 1_500,
      action: "REGISTER",
    });
  });

  it("should handle unknown values of a newer server", () => {
    const goAway = create(GoAwaySchema, {
      reason: 9_999 as ErrorReason,
      action: 99 as GoAwayAction,
    });
    expect(endOfGoAway(goAway)).toMatchObject({ reason: undefined, action: undefined });
  });

  it("should have no reason if none is given", () => {
    expect(endOfGoAway(create(GoAwaySchema))).toMatchObject({
      reason: undefined,
      retryAfterMs: undefined,
    });
  });
});

describe("endOfStatus()", () => {
  it("should read the details of a status, reached or not", () => {
    const error = toGrpcStatus(refuse("OVERLOADED", "too many hellos", { retryAfterMs: 2_000 }));
    const end = {
      kind: "refused",
      reason: "OVERLOADED",
      message: "too many hellos",
      retryAfterMs: 2_000,
      action: undefined,
    };
    expect(endOfStatus(error, false)).toEqual(end);
    expect(endOfStatus(error, true)).toEqual(end);
  });

  it.each([
    ["an error", { code: 14, details: "connection reset" }],
    ["a good end", undefined],
  ])("should distinguish whether a server was reached before %s", (_, error) => {
    expect(endOfStatus(error, false).kind).toBe("unreachable");
    expect(endOfStatus(error, true)).toMatchObject({ kind: "refused", reason: undefined });
  });
});
