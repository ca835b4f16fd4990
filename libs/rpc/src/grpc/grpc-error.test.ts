import { Metadata } from "@grpc/grpc-js";
import { describe, expect, it } from "@jest/globals";
import { describeError, reasonOf, refuse } from "@rollcall/errors";
import { toGrpcStatus } from "@rollcall/testkit/grpc-status";
import { errorFromGrpc } from "./grpc-error.ts";

describe("errorFromGrpc()", () => {
  it("should read everything in the details of a status", () => {
    const error = refuse("NODE_REJECTED", "node has been rejected: too old", {
      metadata: { node: "n1" },
      retryAfterMs: 120_000,
      violations: [{ field: "a", description: "b" }],
    });
    expect(describeError(errorFromGrpc(toGrpcStatus(error)))).toEqual(describeError(error));
    expect(reasonOf(errorFromGrpc(toGrpcStatus(new Error("x"))))).toBe("INTERNAL");
  });

  it("should read an error without details, with broken ones, or of another kind", () => {
    expect(describeError(errorFromGrpc({ code: 14, details: "no connection" }))).toMatchObject({
      code: 14,
      message: "no connection",
      reason: undefined,
    });
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from([0x0a, 0xff]));
    expect(describeError(errorFromGrpc({ code: 5, details: "x", metadata })).code).toBe(5);
    expect(describeError(errorFromGrpc({ code: 99, details: "x" })).code).toBe(2);
    expect(describeError(errorFromGrpc(new Error("plain"))).message).toBe("plain");
  });
});
