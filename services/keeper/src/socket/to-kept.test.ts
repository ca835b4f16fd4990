import { describe, expect, it } from "@jest/globals";
import type { Execution } from "../journal/execution-entry.ts";
import { toIdentity, toKept } from "./to-kept.ts";

describe("toKept()", () => {
  it("should include the ports and GPUs of an execution, so that a store that does not know it can count them", () => {
    const identity = toIdentity(undefined, { job: "web", nodeId: "n1", spec: new Uint8Array() });
    const record = {
      identity: { ...identity, id: "e1", ports: { http: 20_001 }, gpuUuids: ["g1"] },
      ...{ logId: "l1", bootId: "b1", forgottenWallMs: null },
      state: { phase: { kind: "running", isReady: false }, change: 2, startedWallMs: 1, message: "" },
    } as unknown as Execution;
    expect(toKept(record).observation).toMatchObject({ id: "e1", ports: { http: 20_001 }, gpuUuids: ["g1"] });
  });
});
