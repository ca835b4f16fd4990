import { describe, expect, it } from "@jest/globals";
import { type ExposureFacts, exposure } from "./exposure.ts";

const OPEN: ExposureFacts = {
  host: "0.0.0.0",
  proxied: false,
  plaintext: false,
  manualApproval: false,
  joinTokens: "none",
};

describe("exposure()", () => {
  it.each([
    [OPEN, 1],
    [{ ...OPEN, host: "10.0.0.7" }, 1],
    // A node that joins without a token is then named, and joins all the same.
    [{ ...OPEN, joinTokens: "warn" }, 1],
    [{ ...OPEN, joinTokens: "strict" }, 0],
    [{ ...OPEN, manualApproval: true }, 0],
    [{ ...OPEN, plaintext: true }, 2],
    [{ ...OPEN, plaintext: true, manualApproval: true }, 1],
    [{ ...OPEN, plaintext: true, host: "127.0.0.1" }, 0],
    [{ ...OPEN, host: "127.0.0.1" }, 0],
    [{ ...OPEN, host: "::1" }, 0],
    // Every client that reaches the proxy reaches this.
    [{ ...OPEN, host: "127.0.0.1", proxied: true }, 1],
    [{ ...OPEN, host: "127.0.0.1", proxied: true, plaintext: true }, 1],
    [{ ...OPEN, host: "127.0.0.1", proxied: true, joinTokens: "strict" }, 0],
  ] as const)("should speak only where others can join without being asked, or listen: %j", (facts, warnings) => {
    expect(exposure(facts)).toHaveLength(warnings);
  });
});
