import { describe, expect, it } from "@jest/globals";
import { until } from "../../libs/testkit/src/index.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

describe("brake", () => {
  it("should show every group, for people and programs", async () => {
    await rig.connect("n1");
    await rig.run("node label n1 zone=a");
    await until("the group to be counted", async () => (await rig.run("brake status")).out.includes("zone=a"));
    const { out, code } = await rig.run("brake status");
    expect(code).toBe(0);
    expect(out).toMatch(
      /^GROUP +STATE +FOR +SIZE +SILENT +LOST +PENDING +DETAIL\ncluster +normal +- +\d+ +0 +0 +0 +-\n/,
    );
    const json = JSON.parse((await rig.run("brake status --group zone=a -o json")).out);
    expect(json).toMatchObject({ brakes: [{ group: "zone=a", state: "BRAKE_STATE_NORMAL" }] });
    expect((await rig.run("brake status -o name")).out).toBe("cluster\nzone=a\n");
    const none = await rig.run("brake status --group zone=x");
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining("no group zone=x") });
  });

  it("should freeze and release a group, and treat a repetition as done", async () => {
    expect(await rig.run(["brake", "freeze", "--group", "zone=a", "-m", "new switch"])).toMatchObject({
      code: 0,
      out: "Ok: brake of zone=a frozen\n",
    });
    const again = await rig.run("brake freeze --group zone=a");
    expect(again).toMatchObject({ code: 0, out: expect.stringMatching(/^Ok: .*zone=a.*already/) });
    expect((await rig.run("brake freeze --group zone=a --strict")).code).toBe(1);
    const csv = (await rig.run("brake status --group zone=a -o csv --hide-header")).out;
    expect(csv).toMatch(/^zone=a,FROZEN,\S+Z,\d,0,0,0,frozen by token:\S+: new switch\r\n$/);
    expect((await rig.run("status")).out).toMatch(
      /^Brake: +zone=a is frozen \(frozen by .*: new switch\): of \d nodes?/m,
    );
    expect((await rig.run("brake release --group zone=a")).out).toBe("Ok: brake of zone=a released\n");
    const released = await rig.run("brake release --group zone=a");
    expect(released).toMatchObject({ code: 0, out: expect.stringMatching(/^Ok: .*zone=a.*not frozen/) });
    expect((await rig.run("brake release --group zone=a --strict")).code).toBe(1);
  });

  it("should ask before it releases everything at once", async () => {
    const asked: string[] = [];
    const no = await rig.run("brake release --now", {
      ask: async (question) => {
        asked.push(question);
        return "n";
      },
    });
    expect(no).toEqual({ code: 0, out: "", err: "" });
    expect(asked).toEqual(["release 0 reactions of cluster at once? [y/N] "]);
    const blind = await rig.run("brake release --now");
    expect(blind).toMatchObject({ code: 2, err: expect.stringContaining("without a terminal: use --yes") });
    expect((await rig.run("brake release --now --yes -m done")).out).toBe("Ok: brake of cluster released\n");
  });
});
