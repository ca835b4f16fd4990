import { describe, expect, it } from "@jest/globals";
import { listeningError } from "./listening-error.ts";

describe("listeningError()", () => {
  it.each([
    ["listen EADDRINUSE: address already in use 127.0.0.1:7700", /^port 7700 of 127\.0\.0\.1 is in use/],
    [
      "No address added out of total 1 resolved errors: [listen EADDRINUSE: address already in use 127.0.0.1:7700]",
      /^port 7700 of 127\.0\.0\.1 is in use by another process.* \(EADDRINUSE\)$/,
    ],
    ["listen EADDRNOTAVAIL: address not available 127.0.0.1:7700", /is not an address of this machine/],
    ["listen EACCES: permission denied 127.0.0.1:7700", /has no permission to listen on port 7700/],
  ])("should explain: %s", (text, expected) => {
    const cause = new Error(text);
    const error = listeningError(cause, "127.0.0.1", 7700);
    expect(error).toMatchObject({ message: expect.stringMatching(expected), cause });
  });

  it("should return an unknown error unchanged", () => {
    const error = new Error("out of memory");
    expect(listeningError(error, "127.0.0.1", 7700)).toBe(error);
  });
});
