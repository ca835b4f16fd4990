import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { addNode } from "../../libs/testkit/src/index.ts";
import { lines } from "../../services/cli/src/testing/run.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

afterEach(async () => {
  await rig.removeNodes();
  await rig.store.db.deleteFrom("health_policies").execute();
});

async function policyOf(scope: string) {
  const { out } = await rig.run(`policy show ${scope} -o json`);
  return JSON.parse(out).policy;
}

describe("policy set", () => {
  it("should change only the given values, and replace all with --replace", async () => {
    await addNode(rig.store, "n1");
    await rig.run("policy set --group gpus --selector gpu --info-interval 2m");
    const { code, out } = await rig.run(
      "policy set --group gpus --priority -2 --unhealthy-after 70s --unknown-after-missed 0 --unset " +
        "info-interval -m why",
    );
    expect({ code, out }).toEqual({ code: 0, out: "Ok: policy of group gpus set; 0 nodes changed\n" });
    expect(await policyOf("--group gpus")).toMatchObject({
      scope: { group: "gpus" },
      selector: "gpu",
      priority: -2,
      values: { unhealthyAfter: "70s", unknownAfterMissed: 0 },
      reason: "why",
    });
    expect((await rig.run("policy set --default --unhealthy-after 50s")).out).toBe(
      "Ok: default policy set; 1 node changed\n",
    );
    await rig.run("policy set --default --replace --heartbeat-interval 500ms");
    expect((await policyOf("--default")).values).toEqual({ heartbeatInterval: "0.500s" });
  });

  it("should refuse a file with several policies, and name the command that takes them", async () => {
    const one = (group: string) => `scope: {group: ${group}}\nselector: ${group}\nvalues: {unhealthyAfter: 2m}\n`;
    writeFileSync(join(rig.folder, "several.yaml"), `${one("a")}---\n${one("b")}`);
    const answer = await rig.run("policy set -f several.yaml");
    const text = "several.yaml has 2 documents, and policy set takes one policy; `rollcall apply -f` accepts several";
    expect(answer).toMatchObject({ code: 2, err: expect.stringContaining(text) });
  });

  it("should read the output of show, and durations as people write them", async () => {
    await rig.run(
      "policy set --group gpus --selector gpu --priority 3 --unhealthy-after 90s --unhealthy-after-missed 4",
    );
    const shown = (await rig.run("policy show --group gpus -o yaml")).out;
    const before = await policyOf("--group gpus");
    const { policy } = JSON.parse((await rig.run("policy show --group gpus -o json")).out);
    const { scope, selector, priority, values } = policy;
    const text = JSON.stringify({ scope, selector, priority, values: { ...values, unhealthyAfter: "1.5m" } });
    expect(shown).toContain("unhealthyAfter: 90s");
    writeFileSync(join(rig.folder, "policy.yaml"), text);
    const { code, err } = await rig.run("policy set -f policy.yaml");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect((await policyOf("--group gpus")).values).toEqual(before.values);
  });

  it("should accept 0s for never, on and off, and degrees", async () => {
    const { code } = await rig.run(
      "policy set --default --flapping-hold 0s --reboot-hold 5m --hardware-hold off --gpu-max-celsius 85 " +
        "--agent-may-shorten on",
    );
    expect(code).toBe(0);
    expect((await policyOf("--default")).values).toEqual({
      flappingHold: "0s",
      rebootHold: "300s",
      hardwareHold: false,
      gpuMaxCelsius: 85,
      agentMayShorten: true,
    });
  });

  it("should name flags where the server refuses values", async () => {
    const short = await rig.run("policy set --default --unhealthy-after 10s");
    expect(short.code).toBe(1);
    expect(short.err).toContain("--unhealthy-after is 10s: it must be at least two heartbeats of 15s");
    const tiny = await rig.run("policy set --default --heartbeat-interval 1ms");
    expect(tiny.err).toContain("--heartbeat-interval: must be");
  });

  it.each([
    ["policy set --unhealthy-after 1m", "pass exactly one of --default, --group NAME and --node NODE"],
    [
      "policy set --default --node n1 --unhealthy-after 1m",
      "pass exactly one of --default, --group NAME and --node NODE",
    ],
    ["policy set --default", "no values given"],
    ["policy set --default --unhealthy-after soon", "cannot use 'soon' as unhealthy-after value"],
    ["policy set --default --unhealthy-after-missed few", "cannot use 'few'"],
    ["policy set --default --hardware-hold maybe", "should be on or off"],
    ["policy set --default --unset patience", "cannot use 'patience' as unset value"],
    ["policy set --group g --priority high", "cannot use 'high' as priority value"],
    ["policy set -f nowhere.yaml", "cannot read nowhere.yaml"],
    ["policy set -f policy.yaml --default", "cannot be combined with other flags"],
  ])("should refuse %j before it makes a call", async (line, message) => {
    const { code, err } = await rig.run(line, { env: { ROLLCALL_SERVER: "127.0.0.1:1" } });
    expect(code).toBe(2);
    expect(err).toContain(message);
  });
});

describe("policy list, show, delete and preview", () => {
  it("should list the configuration and every policy, with - for inherited values", async () => {
    await addNode(rig.store, "n1");
    await rig.run("policy set --group gpus --selector gpu --priority 3 --unhealthy-after 90s -m slow");
    await rig.run("policy set --node n1 --heartbeat-interval 1500ms");
    const [heading = "", ...rows] = (await rig.run("policy list")).out.trimEnd().split("\n");
    const titles = heading.split(/ {2,}/);
    const cellsOf = (row = "") => Object.fromEntries(row.split(/ {2,}/).map((cell, at) => [titles[at], cell]));
    expect(rows.map((row) => cellsOf(row).SCOPE)).toEqual(["configuration", "group gpus", "node n1"]);
    expect(cellsOf(rows[0])).toMatchObject({ "UNHEALTHY AFTER": "1m", "UNKNOWN AFTER": "5m", PRIORITY: "-" });
    const group = { SELECTOR: "gpu", PRIORITY: "3", "UNHEALTHY AFTER": "1m30s", "INFO INTERVAL": "-", REASON: "slow" };
    expect(cellsOf(rows[1])).toMatchObject(group);
    expect(cellsOf(rows[2])).toMatchObject({ SELECTOR: "-", "HEARTBEAT INTERVAL": "1500ms" });
    expect(JSON.parse((await rig.run("policy list -o json")).out).policies).toHaveLength(2);
    const narrow = (await rig.run("policy list", { env: { COLUMNS: "80" } })).out.split("\n");
    expect(narrow[0]).toMatch(/^SCOPE +SELECTOR +PRIORITY +UNHEALTHY AFTER +HEARTBEAT INTERVAL +REASON$/);
  });

  it("should show what is set, the result, and where it comes from", async () => {
    await rig.run("policy set --group gpus --selector gpu --priority 3 --unhealthy-after 90s -m slow");
    const { out } = await rig.run("policy show --group gpus");
    expect(out).toMatch(/^group gpus {2}gpu {2}priority 3\nslow \(token admin\)\n/);
    expect(out).toMatch(/^unhealthy-after +1m30s +1m30s +group gpus$/m);
    expect(out).toMatch(/^heartbeat-interval +- +15s +configuration$/m);
  });

  it("should preview a change and a deletion, and delete", async () => {
    for (const id of ["n1", "n2", "n3"]) await addNode(rig.store, id);
    const some = await rig.run("policy preview --default --unhealthy-after 30s --limit 2");
    expect(some.out).toBe(lines("NODE  CHANGE", "n1    unhealthy-after 1m -> 30s", "n2    unhealthy-after 1m -> 30s"));
    expect(some.err).toBe("3 nodes would change, 2 of them shown\n");
    await rig.run("policy set --node n1 --unhealthy-after 30s");
    const all = await rig.run("policy preview --delete --node n1 --limit 0 -o name");
    expect(all).toEqual({ code: 0, out: "n1\n", err: "1 node would change\n" });
    expect((await rig.run("policy delete --node n1 -m over")).out).toBe(
      "Ok: policy of node n1 deleted; 1 node changed\n",
    );
    expect((await rig.run("policy delete --node n1")).err).toContain("no health policy is set for");
  });
});
