import { Metadata } from "@grpc/grpc-js";
import { describe, expect, it } from "@jest/globals";
import { describeError, reasonOf, refuse } from "@rollcall/errors";
import { DETAILS_TRAILER, errorFromGrpc, toGrpcStatus } from "./grpc-error.ts";

describe("errorFromGrpc()", () => {
  it("should read everything that toGrpcStatus() wrote", () => {
    const error = refuse("NODE_REJECTED", "node has been rejected: too old", {
      metadata: { node: "n1" },
      retryAfterMs: 120_000,
      violations: [{ field: "a", description: "b" }],
    });
    expect(describeError(errorFromGrpc(toGrpcStatus(error)))).toEqual(describeError(error));
  });

  it("should map a handler's exception without revealing it", () => {
    const status = toGrpcStatus(new Error("password=hunter2"));
    expect(status).toMatchObject({ code: 13, details: "internal error" });
    expect(JSON.stringify(status.metadata.getMap())).not.toContain("hunter2");
    expect(reasonOf(errorFromGrpc(status))).toBe("INTERNAL");
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

describe("toGrpcStatus()", () => {
  it.each(["x", "é", "\u{1f4be}", "\0", "\ud800"])(
    "should fit into the trailers that every client accepts, whatever it contains: %j",
    (character) => {
      const long = character.repeat(50_000);
      const violations = Array.from({ length: 1_000 }, () => ({ field: long, description: long }));
      const error = refuse("INVALID_REQUEST", long, {
        violations,
        metadata: { node: long, label: long },
        subject: long,
        retryAfterMs: 1,
      });
      const { details, metadata } = toGrpcStatus(error);
      const trailers = metadata.get(DETAILS_TRAILER).map((it) => it.length);
      expect(Math.max(...trailers)).toBeLessThan(7_000);
      expect(Buffer.byteLength(details)).toBeLessThanOrEqual(1_024);
      expect(details).toMatch(/\.\.\.$/);
      expect(details).not.toContain("\ufffd...");
      expect(describeError(error).violations.length).toBeGreaterThan(0);
    },
  );
});
