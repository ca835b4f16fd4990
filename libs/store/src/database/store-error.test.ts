import { describe, expect, it } from "@jest/globals";
import { StoreUnavailableError } from "@rollcall/errors";
import { toStoreError } from "./store-error.ts";

const withCode = (code: string, message = "driver says no", more: object = {}) =>
  Object.assign(new Error(message), { code, ...more });

describe("toStoreError()", () => {
  it.each([
    ["a server that ends", withCode("57P01")],
    ["a server that crashed", withCode("57P02")],
    ["a server that starts", withCode("57P03")],
    ["a connection that failed", withCode("08006")],
    ["a connection that could not be made", withCode("08001")],
    ["no connection left", withCode("53300")],
    ["a refused connection", withCode("ECONNREFUSED")],
    ["a reset connection", withCode("ECONNRESET")],
    ["a socket that is not there", withCode("ENOENT", "connect ENOENT", { syscall: "connect" })],
    ["a socket at which too many wait", withCode("EAGAIN", "connect EAGAIN", { syscall: "connect" })],
    ["a terminated connection", new Error("Connection terminated unexpectedly")],
    ["a pool without a free connection", new Error("timeout exceeded when trying to connect")],
    ["several addresses that failed", new AggregateError([withCode("ECONNREFUSED")], "all failed")],
    ["a wrapped error", new Error("query failed", { cause: withCode("57P01") })],
  ])("should know %s for a record that is away", (_, error) => {
    const told = toStoreError(error);
    expect(told).toBeInstanceOf(StoreUnavailableError);
    expect(told).toMatchObject({ message: error.message, cause: error });
  });

  it.each([
    ["a broken constraint", withCode("23505", "duplicate key nodes_pkey")],
    ["a missing file", withCode("ENOENT", "open ENOENT", { syscall: "open" })],
    ["a full pipe", withCode("EAGAIN", "write EAGAIN", { syscall: "write" })],
    ["a text", "thrown text"],
  ])("should leave %s as it is", (_, error) => {
    expect(toStoreError(error)).toBe(error);
  });

  it("should end on an error that is its own cause", () => {
    const error = new Error("round");
    error.cause = error;
    expect(toStoreError(error)).toBe(error);
  });
});
