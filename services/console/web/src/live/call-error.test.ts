import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { toCallError } from "./call-error.ts";

describe("toCallError()", () => {
  it.each<[string, unknown, string]>([
    ["a lost network", new TypeError("Failed to fetch"), "away"],
    ["a call that the page gave up", new DOMException("aborted", "AbortError"), "away"],
    ["a server that is away", new ConnectError("away", Code.Unavailable), "away"],
    ["what cannot be asked", new ConnectError("no name", Code.InvalidArgument), "invalid"],
    ["what no one knows", new Error("what?"), "other"],
    ["a session that ended", new ConnectError("who?", Code.Unauthenticated), "signed-out"],
  ])("should know %s", (_, cause, kind) => {
    expect(toCallError(cause).kind).toBe(kind);
  });
});
