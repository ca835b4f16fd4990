import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import type { Standing } from "../execution/executor.ts";
import { machineClock } from "../execution/keeper-services.ts";
import { TEST_RULES } from "../testing/keeper-fixture.ts";
import { LABELS } from "./container-settings.ts";
import type { DockerEngine } from "./docker-engine.ts";
import { DockerExecutor } from "./docker-executor.ts";

/** Create an executor whose engine has containers in these states, keyed by execution. */
function setUp(containers: Readonly<Record<string, string>>) {
  const present = new Map(Object.entries(containers));
  const world = { isAway: false };
  const client = {
    listContainers: async () => [...present].map(([Id, State]) => ({ Id, State, Labels: { [LABELS.execution]: Id } })),
    getContainer: (id: string) => ({
      remove: async () => {
        present.delete(id);
      },
    }),
  };
  const engine = {
    client: async () => {
      if (world.isAway) throw new Error("connect ECONNREFUSED");
      return client;
    },
  };
  const executor = new DockerExecutor({
    engine: engine as unknown as DockerEngine,
    rules: { ...TEST_RULES, executors: ["docker"] },
    ...{ keeper: "k", clock: machineClock, log: silentLogger },
  });
  return { executor, world, left: () => [...present.keys()] };
}

describe("DockerExecutor", () => {
  it("should later remove containers that it could not end while the engine was away", async () => {
    const { executor, world, left } = setUp({ stopped: "running", other: "running" });
    const standing = (id: string): Standing => (id === "stopped" ? "ended" : "kept");
    world.isAway = true;
    await executor.end("stopped");
    await executor.tidy(standing);
    world.isAway = false;
    expect(left()).toEqual(["stopped", "other"]);
    await executor.tidy(standing);
    expect(left()).toEqual(["other"]);
  });

  it.each([
    ["kept", "running", true],
    ["kept", "exited", true],
    // The container stays for inspection until the control plane knows that it ended.
    ["ended", "exited", true],
    ["ended", "running", false],
    ["forgotten", "running", false],
    ["forgotten", "exited", false],
    // The container stays, because the journal may have been lost, so the operator decides.
    ["unknown", "running", true],
    ["unknown", "exited", false],
  ] as const)(
    "should tidy a container whose execution is %s and that is %s: stays %s",
    async (standing, state, stays) => {
      const { executor, left } = setUp({ one: state });
      await executor.tidy(() => standing);
      expect(left()).toEqual(stays ? ["one"] : []);
    },
  );
});
