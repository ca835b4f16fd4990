import { describe, expect, it } from "@jest/globals";
import { FailureLimiter, NODE_FAILURE_LIMITS } from "@rollcall/domain";
import { reasonOf, refuse } from "@rollcall/errors";
import { FailedAttempts } from "@rollcall/rpc";
import { HelloGate } from "./hello-gate.ts";

const LIMITS = { ...NODE_FAILURE_LIMITS, limits: { perSecond: 1, burst: 2 } };
const WRONG = refuse("PROOF_INVALID", "no signature");

function createGate(): HelloGate {
  const limiter = () => new FailureLimiter(LIMITS);
  return new HelloGate(new FailedAttempts({ node: limiter(), token: limiter() }, { nowMs: () => 0 }));
}

const from = (nodeId: string, port = 1) => ({ nodeId, peer: `10.0.0.1:${port}` });

function entering(gate: HelloGate, nodeId: string, port = 1): string | undefined {
  try {
    gate.enter(from(nodeId, port));
    return "in";
  } catch (error) {
    return reasonOf(error);
  }
}

describe("HelloGate", () => {
  it("should block an address with too many failures, except for nodes seen before", () => {
    const gate = createGate();
    gate.proven(from("known"));
    gate.refused(from("a", 1), WRONG);
    expect(entering(gate, "b", 2)).toBe("in");
    gate.refused(from("b", 2), WRONG);
    expect(entering(gate, "c", 3)).toBe("TOO_MANY_FAILURES");
    expect(entering(gate, "known", 4)).toBe("in");
  });

  it("should count only failures of a proof", () => {
    const gate = createGate();
    for (let call = 0; call < 20; call += 1) {
      gate.refused(from("a"), refuse("SESSION_SUPERSEDED", "a newer stream took over"));
    }
    expect(entering(gate, "a")).toBe("in");
  });

  it("should limit the waiting Hellos of one node", () => {
    const gate = new HelloGate(null);
    for (let hello = 0; hello < 32; hello += 1) expect(entering(gate, "a")).toBe("in");
    expect(entering(gate, "a")).toBe("TOO_MANY_STREAMS");
    expect(entering(gate, "b")).toBe("in");
    gate.leave(from("a"));
    expect(entering(gate, "a")).toBe("in");
  });
});
