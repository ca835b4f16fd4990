import { describe, expect, it } from "@jest/globals";
import { listeningError } from "./listening-error.ts";

describe("listeningError()", () => {
  it.each([
    ["EADDRINUSE", /^port 7700 of 127\.0\.0\.1 is in use by another process.* \(EADDRINUSE\)$/],
    ["EADDRNOTAVAIL", /is not an address of this machine/],
    ["EACCES", /has no permission to listen on port 7700/],
  ])("should explain %s", (code, expected) => {
    const cause = Object.assign(new Error(`listen ${code}`), { code });
    const error = listeningError(cause, "127.0.0.1", 7700);
    expect(error).toMatchObject({ message: expect.stringMatching(expected), cause });
  });

  it("should return an unknown error unchanged", () => {
    const error = new Error("out of memory");
    expect(listeningError(error, "127.0.0.1", 7700)).toBe(error);
  });
});
