import { describe, expect, it } from "@jest/globals";
import { FailureLimiter, NODE_FAILURE_LIMITS } from "@rollcall/domain";
import { reasonOf, refuse } from "@rollcall/errors";
import { FailedAttempts } from "@rollcall/rpc";
import { HelloDoor } from "./hello-door.ts";

const LIMITS = { ...NODE_FAILURE_LIMITS, limits: { perSecond: 1, burst: 2 } };
const WRONG = refuse("PROOF_INVALID", "no signature");

function createDoor(): HelloDoor {
  const limiter = () => new FailureLimiter(LIMITS);
  return new HelloDoor(new FailedAttempts({ node: limiter(), token: limiter() }, { nowMs: () => 0 }));
}

const from = (nodeId: string, port = 1) => ({ nodeId, peer: `10.0.0.1:${port}` });

function entering(door: HelloDoor, nodeId: string, port = 1): string | undefined {
  try {
    door.enter(from(nodeId, port));
    return "in";
  } catch (error) {
    return reasonOf(error);
  }
}

describe("HelloDoor", () => {
  it("should shut out an address from which too many failed, but for nodes that were there before", () => {
    const door = createDoor();
    door.proven(from("known"));
    door.refused(from("a", 1), WRONG);
    expect(entering(door, "b", 2)).toBe("in");
    door.refused(from("b", 2), WRONG);
    expect(entering(door, "c", 3)).toBe("TOO_MANY_FAILURES");
    expect(entering(door, "known", 4)).toBe("in");
  });

  it("should not count what is no failure of a proof", () => {
    const door = createDoor();
    for (let call = 0; call < 20; call += 1) {
      door.refused(from("a"), refuse("SESSION_SUPERSEDED", "a newer stream took over"));
    }
    expect(entering(door, "a")).toBe("in");
  });

  it("should let so many hellos of one node wait", () => {
    const door = new HelloDoor(null);
    for (let hello = 0; hello < 32; hello += 1) expect(entering(door, "a")).toBe("in");
    expect(entering(door, "a")).toBe("TOO_MANY_STREAMS");
    expect(entering(door, "b")).toBe("in");
    door.leave(from("a"));
    expect(entering(door, "a")).toBe("in");
  });
});
