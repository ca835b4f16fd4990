import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { BrakeSchema, BrakeState } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { brakeWarnings } from "./brake.ts";

const PARTIAL = { group: "zone=a", state: BrakeState.PARTIAL, automaticState: BrakeState.PARTIAL };

describe("brakeWarnings()", () => {
  it.each([
    ["a group of five", { releasedPerMinute: 1, releaseInterval: durationFromMs(120_000) }, "1 released every 2m"],
    ["a group of forty", { releasedPerMinute: 4, releaseInterval: durationFromMs(15_000) }, "4 released a minute"],
    [
      "one that the cluster holds back further",
      { releasedPerMinute: 2, releaseInterval: durationFromMs(30_000), limitedByCluster: true },
      "2 released a minute, by the cluster's brake",
    ],
    [
      "one of a cluster that is frozen",
      { releasedPerMinute: 0, limitedByCluster: true },
      "none released, by the cluster's brake",
    ],
  ])("should show the real release rate of %s", (_, facts, expected) => {
    expect(brakeWarnings([create(BrakeSchema, { ...PARTIAL, ...facts })])).toEqual([
      `zone=a is partial (${expected}): of 0 nodes 0 silent, 0 lost; 0 reactions held back`,
    ]);
  });

  it("should leave out brakes that are NORMAL, and show who froze others", () => {
    const normal = create(BrakeSchema, { group: "cluster", state: BrakeState.NORMAL });
    const frozen = { state: BrakeState.FROZEN, frozenBy: "token:ops", frozenReason: "new switch" };
    const counts = { size: 40, silent: 2, lost: 28, pending: 25 };
    expect(brakeWarnings([normal, create(BrakeSchema, { group: "zone=b", ...frozen, ...counts })])).toEqual([
      "zone=b is frozen (frozen by token ops: new switch): of 40 nodes 2 silent, 28 lost; 25 reactions held back",
    ]);
  });
});
