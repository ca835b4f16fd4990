import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { describeBriefly, describeFailure } from "./describe-failure.ts";

const CALLEE = {
  service: "registry",
  baseUrl: "http://127.0.0.1:7700",
  timeoutMs: 10_000,
} as const;
const describeIt = (error: unknown) => describeFailure(error, CALLEE);

describe("describeFailure()", () => {
  it("should repeat what the server says", () => {
    expect(describeIt(new ConnectError("node n1 is already approved", Code.FailedPrecondition))).toBe(
      "node n1 is already approved",
    );
  });

  it("should report that nothing listens, and what to do", () => {
    const cause = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const error = new ConnectError("x", Code.Unavailable, undefined, undefined, cause);
    expect(describeIt(error)).toBe(
      "cannot reach the registry service at 127.0.0.1:7700: connection refused\n" +
        "hint: `rollcall up` starts a control plane here; use --server or ROLLCALL_SERVER for another address, " +
        "or --registry for registry only",
    );
    expect(describeBriefly(error, CALLEE)).toBe(
      "cannot reach the registry service at 127.0.0.1:7700: connection refused",
    );
  });

  it("should not offer to start a control plane elsewhere", () => {
    const cause = Object.assign(new Error("connect ETIMEDOUT"), { code: "ETIMEDOUT" });
    const error = new ConnectError("x", Code.Unavailable, undefined, undefined, cause);
    expect(describeFailure(error, { ...CALLEE, baseUrl: "https://rollcall.example" })).toMatch(
      /^cannot reach the registry service at https:\/\/rollcall.example:443: .*\nhint: check that the control plane runs/,
    );
  });

  it("should report that another server answers", () => {
    expect(describeIt(new ConnectError("HTTP 404", Code.Unimplemented))).toBe(
      "the server at 127.0.0.1:7700 is not the registry service (HTTP 404)\nhint: use --server or " +
        "ROLLCALL_SERVER for another address",
    );
  });

  it("should distinguish its own deadline from the server's", () => {
    expect(describeIt(new ConnectError("timed out", Code.DeadlineExceeded))).toBe(
      "no answer from the registry service at 127.0.0.1:7700 within 10s\nhint: use --timeout to wait longer",
    );
    const info = { desc: ErrorInfoSchema, value: { reason: "DEADLINE_EXCEEDED" } };
    expect(describeIt(new ConnectError("the call took too long", Code.DeadlineExceeded, undefined, [info]))).toBe(
      "the call took too long",
    );
  });

  it("should not print a violation that the server truncated earlier than the message", () => {
    const description = "no event has this type; the types are a, b, ...";
    const violations = { desc: BadRequestSchema, value: { fieldViolations: [{ field: "types", description }] } };
    const message = "no event has this type; the types are a, b, c, d, ...";
    expect(describeIt(new ConnectError(message, Code.InvalidArgument, undefined, [violations]))).toBe(message);
  });

  it("should list every violation, and when to try again", () => {
    const violations = {
      desc: BadRequestSchema,
      value: { fieldViolations: [{ field: "page_size", description: "must be at most 1000" }] },
    };
    const retry = { desc: RetryInfoSchema, value: { retryDelay: durationFromMs(2000) } };
    expect(describeIt(new ConnectError("bad", Code.InvalidArgument, undefined, [violations, retry]))).toBe(
      "bad\n  page_size: must be at most 1000\nhint: try again in 2s",
    );
  });

  it("should not say the same twice", () => {
    const violations = {
      desc: BadRequestSchema,
      value: { fieldViolations: [{ field: "page_token", description: "begin again" }] },
    };
    for (const text of ["begin again", "invalid request: page_token: begin again"]) {
      const error = new ConnectError(text, Code.InvalidArgument, undefined, [violations]);
      expect(describeIt(error)).toBe(text);
    }
  });

  it("should list where tokens are looked up", () => {
    expect(describeIt(new ConnectError("the call carries no access token", Code.Unauthenticated))).toMatch(
      /^the call carries no access token\nhint: run `rollcall login`, or pass --token-file, ROLLCALL_TOKEN /,
    );
  });

  it("should not ask a user whose role is too low for another token", () => {
    const info = { desc: ErrorInfoSchema, value: { reason: "ROLE_TOO_LOW", domain: "rollcall.io" } };
    const error = new ConnectError("needs the role operator", Code.PermissionDenied, undefined, [info]);
    expect(describeIt(error)).toBe(
      "needs the role operator\nhint: `rollcall whoami` shows your role; ask a user with a higher role",
    );
  });

  it("should print no escape sequence that a server sends", () => {
    expect(describeIt(new ConnectError("\u001b[2Jx", Code.Internal))).toBe("\ufffd[2Jx");
  });
});
