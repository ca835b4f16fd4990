import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GetReplicaStateResponseSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { silentLogger } from "@rollcall/process";
import { CutOffLeaver } from "./leave-when-cut-off.ts";

/**
 * Create a replica, whose lease is in doubt if `isInDoubt` is set, and other replicas. Each of the others holds its
 * lease (true), has lost it (false), or does not respond ("silent").
 */
function setUp(isInDoubt: boolean, others: readonly (boolean | "silent")[], onAsked = () => {}) {
  let asked = 0;
  const replica = { isInDoubt, nodes: { sessions: 5 } };
  const known = others.map((holdsLease, index) => ({
    instance: `r${index}`,
    client: {
      getReplicaState: async () => {
        onAsked();
        if (holdsLease === "silent") throw new Error("silent");
        return create(GetReplicaStateResponseSchema, { holdsLease });
      },
    },
  }));
  const leaver = new CutOffLeaver({
    replica,
    peers: { known: () => known },
    reconnects: { windowMs: () => 0, endpoints: [] },
    mover: {
      leaving: () => 0,
      ask: () => {
        asked += 1;
        return 5;
      },
    },
    log: silentLogger,
    random: () => 0,
  });
  return { turn: () => leaver.turn(), asked: () => asked, replica };
}

describe("CutOffLeaver", () => {
  it.each([
    ["one that holds its lease is there", true, [false, true, "silent"], 1],
    ["no other holds its lease", true, [false, "silent"], 0],
    ["there is no other", true, [], 0],
    ["it is not in doubt itself", false, [true], 0],
  ] as const)("should ask agents to move only if others can admit them: %s", async (_, isInDoubt, others, times) => {
    const { turn, asked } = setUp(isInDoubt, others);
    await turn();
    expect(asked()).toBe(times);
  });

  it("should move no agents when its doubt ends before the others have answered", async () => {
    const { turn, asked, replica } = setUp(true, [true], () => {
      replica.isInDoubt = false;
    });
    await turn();
    expect(asked()).toBe(0);
  });
});
