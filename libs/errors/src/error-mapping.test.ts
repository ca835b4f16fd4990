import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { isStoreUnavailable, mapError, StoreUnavailableError } from "./error-mapping.ts";
import { refuse } from "./refusal-error.ts";
import { describeError, toConnectError } from "./wire-error.ts";

const withCode = (code: string, message = "driver says no", more: object = {}) =>
  Object.assign(new Error(message), { code, ...more });

describe("mapError()", () => {
  it("should give a refusal its status", () => {
    const refusal = refuse("NODE_NOT_FOUND", "no node n1", { metadata: { node: "n1" } });
    const mapped = mapError(refusal);
    expect(mapped.code).toBe(Code.NotFound);
    expect(describeError(mapped)).toEqual(describeError(refusal));
  });

  it("should give a refusal that Connect wrapped its own status", () => {
    const wrapped = ConnectError.from(refuse("DEADLINE_EXCEEDED", "the call took too long"));
    expect(describeError(mapError(wrapped))).toMatchObject({
      reason: "DEADLINE_EXCEEDED",
      message: "the call took too long",
    });
  });

  it("should leave an error with a reason unchanged", () => {
    const error = toConnectError(refuse("NODE_NOT_FOUND", "no node n1"));
    expect(mapError(error)).toBe(error);
  });

  it.each([
    ["an unavailable store", new StoreUnavailableError("connect ECONNREFUSED")],
    ["an error that it caused", new Error("query failed", { cause: new StoreUnavailableError("terminated") })],
  ])("should map %s to STORE_UNAVAILABLE, with a retry time", (_, error) => {
    const mapped = mapError(error);
    expect(describeError(mapped)).toMatchObject({
      code: Code.Unavailable,
      reason: "STORE_UNAVAILABLE",
      retryAfterMs: 1_000,
    });
    expect(mapped.rawMessage).not.toContain(error.message);
    expect(mapped.cause).toBe(error);
  });

  it.each([
    ["a broken constraint", withCode("23505", "duplicate key nodes_pkey")],
    ["a missing file", withCode("ENOENT", "open ENOENT", { syscall: "open" })],
    ["another server that refuses", withCode("ECONNREFUSED")],
    ["a defect", new TypeError("x is undefined")],
    ["a text", "thrown text"],
    ["nothing", undefined],
    ["another library's error", new ConnectError("secret", Code.Unknown)],
    ["lost data", new ConnectError("secret", Code.DataLoss)],
  ])("should hide %s as INTERNAL", (_, error) => {
    const mapped = mapError(error);
    expect(describeError(mapped)).toMatchObject({
      code: Code.Internal,
      reason: "INTERNAL",
      message: "internal error",
    });
    expect(mapped.cause).toBe(error);
  });

  it.each([
    [Code.Canceled, "x", "CANCELLED"],
    [Code.Aborted, "x", "CANCELLED"],
    [Code.Internal, "http/2 stream closed with error code CANCEL (0x8)", "CANCELLED"],
    [Code.ResourceExhausted, "http/2 stream closed with error code ENHANCE_YOUR_CALM (0xb)", "CANCELLED"],
    [Code.DeadlineExceeded, "x", "DEADLINE_EXCEEDED"],
    [Code.InvalidArgument, "x", "MALFORMED_MESSAGE"],
    [Code.Internal, "parse binary: premature EOF", "MALFORMED_MESSAGE"],
    [Code.ResourceExhausted, "x", "MESSAGE_TOO_LARGE"],
    [Code.Unimplemented, "x", "UNKNOWN_METHOD"],
  ])("should give code %i of the transport (%s) the reason %s", (code, text, reason) => {
    expect(describeError(mapError(new ConnectError(text, code))).reason).toBe(reason);
  });

  it.each([
    [
      "message size 1048700 is larger than configured readMaxBytes 524288",
      "the message has 1048700 bytes, more than the limit of 524288 bytes: send less in one request",
    ],
    [
      "message size is larger than configured readMaxBytes 524288",
      "the message is larger than the limit of 524288 bytes: send less in one request",
    ],
  ])("should report the limit and what to do for %s", (text, ours) => {
    const { rawMessage } = mapError(new ConnectError(text, Code.ResourceExhausted));
    expect(rawMessage).toBe(ours);
  });

  it("should recognise an abort, and keep codes that other protocols require", () => {
    expect(describeError(mapError(new DOMException("x", "AbortError"))).reason).toBe("CANCELLED");
    const notFound = new ConnectError("no such service", Code.NotFound);
    expect(mapError(notFound)).toBe(notFound);
    const details = [{ desc: ErrorInfoSchema, value: { reason: "TEAPOT", domain: "another.example" } }];
    const another = new ConnectError("no coffee", Code.Unknown, undefined, details);
    expect(mapError(another)).toBe(another);
  });
});

describe("isStoreUnavailable()", () => {
  it("should terminate on an error that is its own cause", () => {
    const error = new Error("round");
    error.cause = error;
    expect(isStoreUnavailable(error)).toBe(false);
  });
});
