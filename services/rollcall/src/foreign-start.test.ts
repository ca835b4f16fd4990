import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SAMPLES } from "./testing/sample-configs.ts";
import { createUpFixture, type UpFixture } from "./testing/up-fixture.ts";

let fixture: UpFixture;
beforeAll(async () => {
  fixture = await createUpFixture();
});
afterAll(() => fixture.dispose());

describe("a control plane and agents with the files of another program", () => {
  it("should start, warn once each, and work", async () => {
    const file = join(SAMPLES, "bacalhau-orchestrator.yaml");
    const up = await fixture.up("--config", file, "--no-agent");
    const { problem } = await up.logged("odd setting");
    expect(problem).toContain("left aside, since they mean nothing here: NameProvider, ");
    expect(up.out.match(/"odd setting"/g)).toHaveLength(1);

    const agents = [
      fixture.agent("of-bacalhau", "--config", join(SAMPLES, "bacalhau-compute.yaml")),
      fixture.agent("of-kohakuriver", "--config", join(SAMPLES, "runner_config.py")),
    ];
    for (const id of ["of-bacalhau", "of-kohakuriver"]) {
      // The orchestrator's file has manual approval.
      await fixture.client.becomes(id, "PENDING CONNECTED HEALTHY");
    }
    const node = await fixture.client.node("of-bacalhau");
    expect(node?.labels).toMatchObject([{ key: "gpu" }, { key: "region", value: "eu-west" }]);
    for (const agent of agents) expect(await agent.killed("SIGTERM")).toBe(0);
    expect(await up.killed("SIGTERM")).toBe(0);
  });
});
