import { describe, expect, it } from "@jest/globals";
import { StoreUnavailableError } from "@rollcall/errors";
import { classifyStoreError, isConnectionLimit, storeErrorCode, toConnectError, toStoreError } from "./store-error.ts";

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
    ["a full disk", withCode("53100")],
    ["a disk that fails", withCode("58030")],
    ["a read-only session", withCode("25006")],
    ["a server in recovery", withCode("55000")],
    ["a transaction that idled for too long", withCode("25P03")],
    ["a session that idled for too long", withCode("57P05")],
    ["a statement that was cancelled", withCode("57014")],
    ["a prepared statement that is gone", withCode("26000")],
    ["another client's prepared statement", withCode("42P05")],
    ["a plan for an older schema", withCode("0A000", "cached plan", { routine: "RevalidateCachedQuery" })],
    ["a role without rights", withCode("42501")],
    ["a role that was dropped", withCode("28000")],
    ["tables that the session cannot find", withCode("42P01")],
    ["a refused connection", withCode("ECONNREFUSED")],
    ["a reset connection", withCode("ECONNRESET")],
    ["a socket that is not there", withCode("ENOENT", "connect ENOENT", { syscall: "connect" })],
    ["a socket at which too many wait", withCode("EAGAIN", "connect EAGAIN", { syscall: "connect" })],
    ["a terminated connection", new Error("Connection terminated unexpectedly")],
    ["a client that was closed", new Error("Client was closed and is not queryable")],
    ["answers that nobody asked for", new Error("Received unexpected dataRow message from backend.")],
    ["a pool without a free connection", new Error("timeout exceeded when trying to connect")],
    ["several addresses that failed", new AggregateError([withCode("ECONNREFUSED")], "all failed")],
    ["a wrapped error", new Error("query failed", { cause: withCode("57P01") })],
  ])("should recognize %s as an unavailable store", (_, error) => {
    const told = toStoreError(error);
    expect(told).toBeInstanceOf(StoreUnavailableError);
    expect(told).toMatchObject({ message: error.message, cause: error });
  });

  it.each([
    ["a broken constraint", withCode("23505", "duplicate key nodes_pkey")],
    ["a failed transaction", withCode("25P02")],
    ["a missing column", withCode("42703")],
    ["what the server does not support", withCode("0A000")],
    ["a lock that was not got", withCode("55P03")],
    ["a missing file", withCode("ENOENT", "open ENOENT", { syscall: "open" })],
    ["a full pipe", withCode("EAGAIN", "write EAGAIN", { syscall: "write" })],
    ["a text", "thrown text"],
  ])("should leave %s unchanged", (_, error) => {
    expect(toStoreError(error)).toBe(error);
  });

  it("should report that the server did not answer instead of the driver's text", () => {
    expect(toStoreError(new Error("Query read timeout"))).toMatchObject({
      message: "the server did not answer in time",
    });
  });

  it("should terminate on an error that is its own cause", () => {
    const error = new Error("round");
    error.cause = error;
    expect(toStoreError(error)).toBe(error);
  });
});

describe("classifyStoreError()", () => {
  it.each([
    ["pool", ["25006", "55000"]],
    ["connection", ["08006", "57P01", "57P02", "57P03", "57P05", "25P03", "25001", "26000", "42P05", "42501", "28000"]],
    ["connection", ["3D000", "53200", "42P01", "42883", "57014", "55P03", "XX000", "ECONNRESET", "EPIPE"]],
    ["nothing", ["53100", "53300", "25P02", "23505", "22P02", "40P01", "22012"]],
  ] as const)("should say that these spoil the %s: %j", (spoils, codes) => {
    for (const code of codes) expect([code, classifyStoreError(withCode(code)).spoils]).toEqual([code, spoils]);
  });

  it("should find the code of a cause", () => {
    const wrapped = new Error("outer", { cause: withCode("25006") });
    expect(classifyStoreError(wrapped).spoils).toBe("pool");
    expect(storeErrorCode(wrapped)).toBe("25006");
    expect(storeErrorCode(new Error("none"))).toBe("");
  });
});

describe("isConnectionLimit()", () => {
  it.each([
    ["Postgres without a free connection", withCode("53300", "sorry, too many clients already"), true],
    ["PgBouncer at its limit", withCode("08P01", "no more connections allowed (max_client_conn)"), true],
    [
      "PgBouncer at a user's limit",
      withCode("08P01", "client connections exceeded (max_user_client_connections)"),
      true,
    ],
    [
      "PgBouncer that cannot log in",
      withCode("08P01", "server login failed: FATAL too many connections for role"),
      false,
    ],
    ["PgBouncer that waits to log in", withCode("08P01", "server login has been failing, try again later"), false],
    ["PgBouncer that ends", withCode("08P01", "pgbouncer is shutting down"), false],
    ["a full disk", withCode("53100", "no connections"), false],
  ])("should detect whether %s allows no more connections", (_, error, expected) => {
    expect(isConnectionLimit(toConnectError(error))).toBe(expected);
  });
});

describe("toConnectError()", () => {
  it("should treat every failure to connect as an unavailable database", () => {
    const error = new Error("self-signed certificate");
    expect(toConnectError(error)).toMatchObject({ message: "self-signed certificate", cause: error });
    const known = new StoreUnavailableError("known");
    expect(toConnectError(known)).toBe(known);
  });
});
