import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, it } from "@jest/globals";
import { HealthPolicySchema } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";

const server = useFakeControlPlane();
const cwd = mkdtempSync(join(tmpdir(), "rollcall-policy-"));
afterAll(() => rmSync(cwd, { recursive: true }));

const gpus = () =>
  create(HealthPolicySchema, {
    scope: { scope: { case: "group", value: "gpus" } },
    selector: "gpu",
    priority: 3,
    values: { unhealthyAfter: durationFromMs(90_000), unhealthyAfterMissed: 4 },
    reason: "slow switches",
    actor: "token:ops",
  });
const ofNode = () =>
  create(HealthPolicySchema, {
    scope: { scope: { case: "node", value: "n1" } },
    values: { heartbeatInterval: durationFromMs(1_500) },
  });

const asked = () => JSON.parse((server.calls.at(-1) ?? "").replace(/^\w+ /, ""));

describe("policy set", () => {
  it("should change what is given alone", async () => {
    server.policies.changedNodes = 3;
    const line =
      "policy set --group gpus --selector gpu --priority -2 --unhealthy-after 1m --unknown-after-missed 0 --unset info-interval -m why";
    const { code, out } = await runAgainst(server, line);
    expect({ code, out }).toEqual({ code: 0, out: "Ok, 3 nodes changed\n" });
    expect(asked()).toEqual({
      scope: { group: "gpus" },
      selector: "gpu",
      priority: -2,
      values: { unhealthyAfter: "60s", unknownAfterMissed: 0 },
      updateMask: "values.unhealthyAfter,values.unknownAfterMissed,values.infoInterval,selector,priority",
      reason: "why",
    });
  });

  it("should replace all of it when told so", async () => {
    await runAgainst(server, "policy set --default --replace --heartbeat-interval 500ms");
    expect(asked()).toEqual({ scope: { default: true }, values: { heartbeatInterval: "0.500s" } });
  });

  it("should read what show prints, and durations as people write them", async () => {
    server.policies.policies.push(gpus());
    const shown = await runAgainst(server, "policy show --group gpus --output yaml");
    const text = shown.out.replace("90s", "1.5m");
    expect(text).toContain("unhealthyAfter: 1.5m");
    writeFileSync(join(cwd, "policy.yaml"), text);
    const { code, err } = await runAgainst(server, "policy set -f policy.yaml", { cwd });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(asked()).toEqual({
      scope: { group: "gpus" },
      selector: "gpu",
      priority: 3,
      values: { unhealthyAfter: "90s", unhealthyAfterMissed: 4 },
    });
  });

  it.each([
    ["policy set --unhealthy-after 1m", "say which nodes the policy is for"],
    ["policy set --default --node n1 --unhealthy-after 1m", "say which nodes the policy is for"],
    ["policy set --default", "say what the policy sets"],
    ["policy set --default --unhealthy-after soon", "cannot use 'soon' as unhealthy-after value"],
    ["policy set --default --unhealthy-after-missed few", "cannot use 'few'"],
    ["policy set --default --hardware-hold maybe", "should be on or off"],
    ["policy set --default --unset patience", "cannot use 'patience' as unset value"],
    ["policy set --group g --priority high", "cannot use 'high' as priority value"],
    ["policy set -f nowhere.yaml", "cannot read nowhere.yaml"],
    ["policy set -f policy.yaml --default", "leave out the other flags"],
  ])("should refuse %j", async (line, message) => {
    const { code, err } = await runAgainst(server, line, { cwd });
    expect(code).toBe(2);
    expect(err).toContain(message);
    expect(server.calls).toEqual([]);
  });
});

describe("policy set of holds", () => {
  it("should take 0s for never, on and off, and degrees", async () => {
    const { code } = await runAgainst(
      server,
      "policy set --default --flapping-hold 0s --reboot-hold 5m --hardware-hold off --gpu-max-celsius 85 --agent-may-shorten on",
    );
    expect(code).toBe(0);
    expect(asked().values).toEqual({
      flappingHold: "0s",
      rebootHold: "300s",
      hardwareHold: false,
      gpuMaxCelsius: 85,
      agentMayShorten: true,
    });
  });
});

describe("policy list", () => {
  it("should show what is configured and every policy, with - for what is inherited", async () => {
    server.policies.policies.push(gpus(), ofNode());
    const { out } = await runAgainst(server, "policy list");
    expect(out).toBe(
      lines(
        "SCOPE          SELECTOR  PRIORITY  UNHEALTHY AFTER  UNHEALTHY AFTER MISSED  UNKNOWN AFTER  UNKNOWN AFTER MISSED  HEARTBEAT INTERVAL  INFO INTERVAL  USAGE INTERVAL  FLAPPING HOLD  HARDWARE HOLD  REBOOT HOLD  GPU MAX CELSIUS  AGENT MAY SHORTEN  REASON",
        "configuration  -         -         1m               off                     5m             -                     15s                 -              -               -              -              -            -                -                  -",
        "group gpus     gpu       3         1m30s            4                       -              -                     -                   -              -               -              -              -            -                -                  slow switches",
        "node n1        -         -         -                -                       -              -                     1500ms              -              -               -              -              -            -                -                  -",
      ),
    );
  });

  it("should print all pages as JSON", async () => {
    server.policies.policies.push(gpus(), ofNode());
    const { out } = await runAgainst(server, "policy list --output json");
    expect(JSON.parse(out).policies).toHaveLength(2);
  });
});

describe("policy show", () => {
  it("should show what is set, what results, and where it comes from", async () => {
    server.policies.policies.push(gpus());
    const { out } = await runAgainst(server, "policy show --group gpus");
    expect(out).toContain("group gpus  gpu  priority 3\nslow switches (token:ops)\n");
    expect(out).toMatch(/^unhealthy-after +1m30s +1m30s +group gpus$/m);
    expect(out).toMatch(/^heartbeat-interval +- +15s/m);
  });
});

describe("policy delete", () => {
  it("should name the policy and say why", async () => {
    server.policies.changedNodes = 1;
    const { out } = await runAgainst(server, "policy delete --node n1 -m over");
    expect(out).toBe("Ok, 1 node changed\n");
    expect(asked()).toEqual({ scope: { node: "n1" }, reason: "over" });
  });
});

describe("policy preview", () => {
  it("should show the nodes that would change, and how", async () => {
    server.policies.changedNodes = 3;
    const line = "policy preview --default --unhealthy-after 30s --limit 2";
    const { out, err } = await runAgainst(server, line);
    expect(out).toBe(lines("NODE  CHANGE", "n0    unhealthy-after 1m -> 30s", "n1    unhealthy-after 1m -> 30s"));
    expect(err).toBe("3 nodes would change, 2 of them shown\n");
  });

  it("should preview a deletion", async () => {
    const { code, err } = await runAgainst(server, "policy preview --delete --node n1");
    expect({ code, err }).toEqual({ code: 0, err: "0 nodes would change\n" });
    expect(asked()).toMatchObject({ delete: { scope: { node: "n1" } } });
  });
});
