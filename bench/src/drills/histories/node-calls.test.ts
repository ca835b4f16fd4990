import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { failureOf } from "./node-calls.ts";

function bodyOf(code: string, reason = ""): string {
  const value = Buffer.from(toBinary(ErrorInfoSchema, create(ErrorInfoSchema, { reason }))).toString("base64");
  return JSON.stringify({ code, details: reason === "" ? [] : [{ type: "google.rpc.ErrorInfo", value }] });
}

describe("failureOf()", () => {
  it("should return the reason of a refusal", () => {
    const body = bodyOf("failed_precondition", "NODE_ALREADY_CORDONED");
    expect(failureOf("CordonNode", body)).toEqual({ kind: "refused", reason: "NODE_ALREADY_CORDONED" });
  });

  it.each(["unavailable", "deadline_exceeded"])("should leave the outcome of %s unknown", (code) => {
    expect(failureOf("CordonNode", bodyOf(code, "STORE_UNAVAILABLE"))).toEqual({ kind: "unknown", fault: null });
  });

  it.each([
    ["an internal error", bodyOf("internal", "INTERNAL")],
    ["an error without a reason", bodyOf("not_found")],
    ["a body of another protocol", "<html>"],
    ["a body without a code", "{}"],
  ])("should report %s as a fault", (_, body) => {
    expect(failureOf("CordonNode", body)).toEqual({ kind: "unknown", fault: `CordonNode returned ${body}` });
  });
});
