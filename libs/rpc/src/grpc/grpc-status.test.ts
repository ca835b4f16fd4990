import { describe, expect, it } from "@jest/globals";
import { describeError, refuse } from "@rollcall/errors";
import { DETAILS_TRAILER } from "./grpc-error.ts";
import { toGrpcStatus } from "./grpc-status.ts";

describe("toGrpcStatus()", () => {
  it.each(["x", "é", "\u{1f4be}", "\0", "\ud800"])(
    "should fit into the trailers that every client takes, whatever it is made of: %j",
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
