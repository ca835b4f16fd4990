import { describe, expect, it } from "@jest/globals";
import { listeningError } from "./listening-error.ts";

describe("listeningError()", () => {
  it.each([
    ["listen EADDRINUSE: address already in use 127.0.0.1:7700", /^port 7700 of 127\.0\.0\.1 is taken/],
    [
      "No address added out of total 1 resolved errors: [listen EADDRINUSE: address already in use 127.0.0.1:7700]",
      /^port 7700 of 127\.0\.0\.1 is taken by another process.* \(EADDRINUSE\)$/,
    ],
    ["listen EADDRNOTAVAIL: address not available 127.0.0.1:7700", /is not an address of this machine/],
    ["listen EACCES: permission denied 127.0.0.1:7700", /may not listen on port 7700/],
  ])("should say what to do about: %s", (text, expected) => {
    const cause = new Error(text);
    const error = listeningError(cause, "127.0.0.1", 7700);
    expect(error).toMatchObject({ message: expect.stringMatching(expected), cause });
  });

  it("should leave an error that it does not know as it is", () => {
    const error = new Error("out of memory");
    expect(listeningError(error, "127.0.0.1", 7700)).toBe(error);
  });
});
