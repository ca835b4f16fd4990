import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestShell } from "../../testing/run-client.ts";
import { ALL_SAMPLES, agent, controlPlane, SAMPLES } from "../../testing/sample-configs.ts";
import { createConfigurationView } from "../configuration-view.ts";

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "rollcall-foreign-"));
});
afterAll(() => rmSync(cwd, { recursive: true }));

describe("config convert", () => {
  const view = (folder = SAMPLES) => createConfigurationView(createTestShell({ cwd: folder }));

  it.each(ALL_SAMPLES)("should write a Rollcall file that means the same as %s, and nothing else", async (file) => {
    const { yaml, leftAside } = await view().convert(file);
    expect(leftAside.length).toBeGreaterThan(3);
    writeFileSync(join(cwd, "ours.yaml"), yaml);
    for (const load of [
      (name: string, folder: string) => controlPlane(name, {}, folder),
      (name: string, folder: string) => agent(name, folder),
    ]) {
      const ours = await load("ours.yaml", cwd);
      expect(ours.warnings).toEqual([]);
      expect(ours.values).toEqual((await load(file, SAMPLES)).values);
    }
  });

  it("should show where each value comes from, and why the rest is ignored", async () => {
    const { yaml } = await view().convert("runner_config.py");
    expect(yaml).toBe(`# Converted from runner_config.py. \`rollcall config default\` explains every key.

Log:
  # LOG_LEVEL, runner_config.py:19
  Level: trace

Compute:
  # HOST_ADDRESS, runner_config.py:7: the agent registers at 192.0.2.10:7700; set Compute.Server
  # if the control plane is elsewhere or has TLS
  Server: 192.0.2.10:7700
  Heartbeat:
    # HEARTBEAT_INTERVAL_SECONDS, runner_config.py:13
    Interval: 5s

# Not converted, because Rollcall does not use it:
# RUNNER_BIND_IP, runner_config.py:5: agents open no ports
# RUNNER_PORT, runner_config.py:6: agents open no ports
# HOST_PORT, runner_config.py:8: set Listen.Host and Listen.Port; agents and clients speak gRPC
# there
# SHARED_DIR, runner_config.py:10: it is a path that only KohakuRiver uses
# LOCAL_TEMP_DIR, runner_config.py:11: it is a path that only KohakuRiver uses
# RESOURCE_CHECK_INTERVAL_SECONDS, runner_config.py:14: usage is measured for each heartbeat
# TUNNEL_ENABLED, runner_config.py:16: Rollcall creates no container networks
# VM_DEFAULT_MEMORY_MB, runner_config.py:17: set it in each job file; Rollcall runs processes
# and containers, but no virtual machines
`);
  });

  it("should refuse files that cannot be converted, with every problem", async () => {
    writeFileSync(join(cwd, "bad.yaml"), "Foo: 1\nHEARTBEAT_TIMEOUT: soon\n");
    await expect(view(cwd).convert("bad.yaml")).rejects.toThrow(
      /^bad\.yaml cannot be converted:\nbad\.yaml:1: unknown key Foo.*\nbad\.yaml:2: Orchestrator\.NodeManager\.DisconnectTimeout: "soon" is not/,
    );
    await expect(view(cwd).convert("gone.yaml")).rejects.toThrow("cannot read");
  });

  it.each([
    ["Compute: {AllocatedCapacity: {Memory: 4XB}}", "Compute.AllocatedCapacity: Memory is neither a percentage"],
    ["API: {TLS: {CertFile: c.pem}}", "TLS.KeyFile: TLS.CertFile and TLS.KeyFile must be set together"],
    ["Listen: {Host: 0.0.0.0}", "Listen.Host: --listen 0.0.0.0 is reachable from other machines"],
    ["Compute: {Server: http://o:7700, TLS: {RequireTLS: true}}", "Compute.Server: http:// is not encrypted"],
  ])("should refuse what `up` or the agent would refuse: %s", async (text, problem) => {
    writeFileSync(join(cwd, "refused.yaml"), text);
    await expect(view(cwd).convert("refused.yaml")).rejects.toThrow(problem);
  });

  it("should keep encrypted connections encrypted", async () => {
    writeFileSync(join(cwd, "tls.yaml"), 'Compute: {Orchestrators: ["nats://t@o:4222"], TLS: {RequireTLS: true}}');
    const { yaml } = await view(cwd).convert("tls.yaml");
    expect(yaml).toContain("Server: https://o:7700\n");
    expect(yaml).toContain("RequireTLS: true");
  });
});
