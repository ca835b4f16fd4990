import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { BrakeSchema, BrakeState } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { NOW_MS } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

beforeEach(() => {
  const since = timestampFromMs(NOW_MS - 90_000);
  const counts = { size: 40, silent: 2, lost: 28, pending: 25 };
  server.brake.brakes.push(
    create(BrakeSchema, { group: "cluster", state: BrakeState.NORMAL, size: 100, silent: 2 }),
    create(BrakeSchema, {
      ...{ group: "zone=a", state: BrakeState.PARTIAL, since, ...counts, releasedPerMinute: 4 },
      automaticState: BrakeState.PARTIAL,
    }),
    create(BrakeSchema, {
      ...{ group: "zone=b", state: BrakeState.FROZEN, since, size: 9 },
      ...{ frozenBy: "token:ops", frozenReason: "new switch" },
    }),
  );
});

describe("brake status", () => {
  it("should show every group, and say when nobody decides", async () => {
    server.brake.decider = "";
    const { out, err, code } = await runAgainst(server, "brake status");
    expect(code).toBe(0);
    expect(out).toBe(
      lines(
        "GROUP    STATE    FOR  SIZE  SILENT  LOST  PENDING  DETAIL",
        "cluster  NORMAL   -    100   2       0     0        -",
        "zone=a   PARTIAL  1m   40    2       28    25       4 released a minute",
        "zone=b   FROZEN   1m   9     0       0     0        frozen by token:ops: new switch",
      ),
    );
    expect(err).toBe("no process of health decides at the moment: nothing is released\n");
  });

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
  ])("should say what is really released of %s", async (_, facts, expected) => {
    server.brake.brakes.splice(0);
    const state = {
      group: "zone=a",
      state: BrakeState.PARTIAL,
      automaticState: BrakeState.PARTIAL,
    };
    server.brake.brakes.push(create(BrakeSchema, { ...state, ...facts }));
    const { out } = await runAgainst(server, "brake status --hide-header");
    expect(out.trim().split(/ {2,}/).at(-1)).toBe(expected);
  });

  it("should show one group for programs, and refuse one that is not there", async () => {
    const { out } = await runAgainst(server, "brake status --group zone=a --output json");
    expect(JSON.parse(out)).toMatchObject({
      brakes: [{ group: "zone=a", state: "BRAKE_STATE_PARTIAL", lost: 28 }],
      decider: "health-1",
    });
    const csv = await runAgainst(server, "brake status --group zone=b --output csv --hide-header");
    expect(csv.out).toMatch(/^zone=b,FROZEN,\S+Z,9,0,0,0,frozen by token:ops: new switch\r\n$/);
    const none = await runAgainst(server, "brake status --group zone=x");
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining("no group zone=x") });
  });

  it("should be part of status where it is not NORMAL", async () => {
    const { out } = await runAgainst(server, "status");
    expect(out).toContain(
      lines(
        "Brake:         zone=a is PARTIAL (4 released a minute): of 40 nodes 2 silent, 28 lost; 25 reactions held back",
        "Brake:         zone=b is FROZEN (frozen by token:ops: new switch): of 9 nodes 0 silent, 0 lost; 0 reactions held back",
      ),
    );
    expect(out).not.toContain("cluster is");
  });
});

describe("brake freeze and release", () => {
  it("should freeze the cluster, or a group", async () => {
    expect(await runAgainst(server, "brake freeze -m why")).toMatchObject({ code: 0, out: "Ok\n" });
    await runAgainst(server, "brake freeze --group zone=a --request-id r1");
    expect(server.calls).toEqual(["FreezeReactions cluster why", "FreezeReactions zone=a  r1"]);
  });

  it("should release, and ask before it lets everything go", async () => {
    await runAgainst(server, "brake release --group zone=b");
    const no = { ask: async () => "n" };
    await runAgainst(server, "brake release --now --group zone=a", no);
    expect(server.calls).toEqual(["ReleaseReactions zone=b  false", "GetBrake"]);
    const blind = await runAgainst(server, "brake release --now --group zone=a");
    expect(blind).toMatchObject({
      code: 2,
      err: expect.stringContaining("release 25 reactions of zone=a at once? There is no terminal"),
    });
    await runAgainst(server, "brake release --now --yes -m done");
    expect(server.calls.at(-1)).toBe("ReleaseReactions cluster done true");
  });
});
