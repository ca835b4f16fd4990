import { describe, expect, it } from "@jest/globals";
import { FailureLimiter } from "./failure-limiter.ts";

const OPTIONS = { limits: { perSecond: 1, burst: 2 }, maxAddresses: 100, maxKnown: 2 };
const HERE = "10.0.0.1:1";

/**
 * Create a limiter that has counted the maximum number of failures of address HERE.
 */
function worn(): FailureLimiter {
  const limiter = new FailureLimiter(OPTIONS);
  limiter.failed(HERE, "x", 0);
  limiter.failed("10.0.0.1:2", "y", 0);
  return limiter;
}

describe("FailureLimiter", () => {
  it("should count failures by address, whatever the port, and nothing else", () => {
    const limiter = new FailureLimiter(OPTIONS);
    for (let call = 0; call < 10; call += 1) {
      expect(limiter.msUntilAllowed(HERE, "a", 0)).toBe(0);
      limiter.passed("a");
    }
    expect(worn().msUntilAllowed("10.0.0.1:3", "z", 0)).toBe(1_000);
    expect(worn().msUntilAllowed("10.0.0.1:3", "z", 1_000)).toBe(0);
    expect(worn().msUntilAllowed("10.0.0.2:1", "z", 0)).toBe(0);
  });

  it("should let credentials pass that were good before", () => {
    const limiter = worn();
    limiter.passed("good");
    expect(limiter.msUntilAllowed(HERE, "good", 0)).toBe(0);
    expect(limiter.msUntilAllowed(HERE, "other", 0)).toBe(1_000);
  });

  it("should not let one that was good and fails now be tried for ever", () => {
    const limiter = worn();
    limiter.passed("good");
    limiter.failed(HERE, "good", 0);
    limiter.failed(HERE, "good", 0);
    expect(limiter.msUntilAllowed(HERE, "good", 0)).toBe(1_000);
    expect(limiter.msUntilAllowed(HERE, "good", 1_000)).toBe(0);
  });

  it("should forget the credential that was seen longest ago", () => {
    const limiter = worn();
    for (const credential of ["a", "b", "a", "c"]) limiter.passed(credential);
    expect(limiter.msUntilAllowed(HERE, "a", 0)).toBe(0);
    expect(limiter.msUntilAllowed(HERE, "b", 0)).toBe(1_000);
    expect(limiter.msUntilAllowed(HERE, "c", 0)).toBe(0);
  });
});
