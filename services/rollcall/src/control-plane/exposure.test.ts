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
    // In this mode, a node without a token still joins and is only reported.
    [{ ...OPEN, joinTokens: "warn" }, 1],
    [{ ...OPEN, joinTokens: "strict" }, 0],
    [{ ...OPEN, manualApproval: true }, 0],
    [{ ...OPEN, plaintext: true }, 2],
    [{ ...OPEN, plaintext: true, manualApproval: true }, 1],
    [{ ...OPEN, plaintext: true, host: "127.0.0.1" }, 0],
    [{ ...OPEN, host: "127.0.0.1" }, 0],
    [{ ...OPEN, host: "::1" }, 0],
    // The process is exposed, because every client of the proxy reaches it.
    [{ ...OPEN, host: "127.0.0.1", proxied: true }, 1],
    [{ ...OPEN, host: "127.0.0.1", proxied: true, plaintext: true }, 1],
    [{ ...OPEN, host: "127.0.0.1", proxied: true, joinTokens: "strict" }, 0],
  ] as const)("should warn only if others can join without approval, or eavesdrop: %j", (facts, warnings) => {
    expect(exposure(facts)).toHaveLength(warnings);
  });
});
