import { describe, expect, it } from "@jest/globals";
import { FailureLimiter, NODE_FAILURE_LIMITS } from "@rollcall/domain";
import { reasonOf, refuse } from "@rollcall/errors";
import { FailedAttempts } from "@rollcall/rpc";
import { HelloAdmission } from "./hello-admission.ts";

const LIMITS = { ...NODE_FAILURE_LIMITS, limits: { perSecond: 1, burst: 2 } };
const WRONG = refuse("PROOF_INVALID", "no signature");

function createAdmission(): HelloAdmission {
  const limiter = () => new FailureLimiter(LIMITS);
  return new HelloAdmission(new FailedAttempts({ node: limiter(), token: limiter() }, { nowMs: () => 0 }));
}

const from = (nodeId: string, port = 1) => ({ nodeId, peer: `10.0.0.1:${port}` });

function entering(admission: HelloAdmission, nodeId: string, port = 1): string | undefined {
  try {
    admission.enter(from(nodeId, port));
    return "in";
  } catch (error) {
    return reasonOf(error);
  }
}

describe("HelloAdmission", () => {
  it("should shut out an address from which too many failed, but for nodes that were there before", () => {
    const admission = createAdmission();
    admission.proven(from("known"));
    admission.refused(from("a", 1), WRONG);
    expect(entering(admission, "b", 2)).toBe("in");
    admission.refused(from("b", 2), WRONG);
    expect(entering(admission, "c", 3)).toBe("TOO_MANY_FAILURES");
    expect(entering(admission, "known", 4)).toBe("in");
  });

  it("should not count what is no failure of a proof", () => {
    const admission = createAdmission();
    for (let call = 0; call < 20; call += 1) {
      admission.refused(from("a"), refuse("SESSION_SUPERSEDED", "a newer stream took over"));
    }
    expect(entering(admission, "a")).toBe("in");
  });

  it("should let so many hellos of one node wait", () => {
    const admission = new HelloAdmission(null);
    for (let hello = 0; hello < 32; hello += 1) expect(entering(admission, "a")).toBe("in");
    expect(entering(admission, "a")).toBe("TOO_MANY_STREAMS");
    expect(entering(admission, "b")).toBe("in");
    admission.leave(from("a"));
    expect(entering(admission, "a")).toBe("in");
  });
});
