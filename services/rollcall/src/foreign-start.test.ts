import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SAMPLES } from "./testing/sample-configs.ts";
import { createUpFixture, type UpFixture } from "./testing/up-fixture.ts";

let fixture: UpFixture;
beforeAll(async () => {
  fixture = await createUpFixture();
});
afterAll(() => fixture.dispose());

describe("an `up` whose agent would refuse the configuration", () => {
  it("should not start, and say why", async () => {
    const dir = await mkdtemp(join(tmpdir(), "rollcall-refused-"));
    const file = join(dir, "c.yaml");
    await writeFile(file, "Compute: {AllocatedCapacity: {Memory: 4XB}}\n");
    const up = fixture.launch("--config", file);
    expect(await up.exit()).toBe(2);
    expect(up.err).toContain("Compute.AllocatedCapacity: Memory is neither");
    await rm(dir, { recursive: true });
  });
});

describe("an `up` with a compute node's file", () => {
  it("should start, with its agent using the TLS setting of `up`", async () => {
    const dir = await mkdtemp(join(tmpdir(), "rollcall-compute-"));
    const file = join(dir, "c.yaml");
    const tls = 'Orchestrators: ["nats://o:4222"], TLS: {RequireTLS: true, CACert: /nowhere/ca.pem}';
    await writeFile(file, `Compute: {${tls}, AllocatedCapacity: {Memory: 4GB}}\n`);
    const up = await fixture.up("--config", file, "--set", "Compute.Name=of-up");
    await fixture.client.becomes("of-up", "APPROVED CONNECTED HEALTHY");
    expect(await up.killed("SIGTERM")).toBe(0);
    await rm(dir, { recursive: true });
  });
});

describe("a control plane and agents with the files of another program", () => {
  it("should start, warn once each, and work", async () => {
    const file = join(SAMPLES, "bacalhau-orchestrator.yaml");
    const up = await fixture.up("--config", file, "--no-agent");
    const { problem } = await up.logged("unusual setting");
    expect(problem).toContain("ignored, because Rollcall does not use them: NameProvider, ");
    expect(up.out.match(/"unusual setting"/g)).toHaveLength(1);

    const agents = [
      fixture.agent("of-bacalhau", "--config", join(SAMPLES, "bacalhau-compute.yaml")),
      fixture.agent("of-kohakuriver", "--config", join(SAMPLES, "runner_config.py")),
    ];
    for (const id of ["of-bacalhau", "of-kohakuriver"]) {
      // The orchestrator's file turns on manual approval.
      await fixture.client.becomes(id, "PENDING CONNECTED HEALTHY");
    }
    const node = await fixture.client.node("of-bacalhau");
    expect(node?.labels).toMatchObject([{ key: "gpu" }, { key: "region", value: "eu-west" }]);
    for (const agent of agents) expect(await agent.killed("SIGTERM")).toBe(0);
    expect(await up.killed("SIGTERM")).toBe(0);
  });
});
