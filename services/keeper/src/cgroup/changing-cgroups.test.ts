import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { processesOfExecution } from "../machine/user-processes.ts";
import { KeeperFixture } from "../testing/keeper-fixture.ts";

describe("executions", () => {
  let fixture: KeeperFixture;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
  });

  afterEach(() => fixture.dispose());

  it.each([
    ["became available after its start", { isBare: true }, {}],
    ["are lost", {}, { hasCgroups: false }],
    ["and namespaces are lost", {}, { isBare: true }],
  ])("should end with all their processes when the cgroups of their keeper %s", async (_, before, after) => {
    await fixture.open(before);
    const script =
      "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 1000\" & echo $ROLLCALL_HOME; while :; do sleep 1; done";
    const value = { command: ["sh", "-c", script], stop: { grace: durationFromMs(50) } };
    const id = await fixture.start({ task: { case: "process", value } });
    await fixture.written(id, "\n");
    const home = (await fixture.output(id)).trim();
    const pids = await until("its processes", async () => {
      const found = await processesOfExecution(home);
      return found.length >= 3 ? found : null;
    });
    await fixture.open(after);
    await fixture.phase(id, "running");
    await fixture.keeper.stop(fixture.record(id).identity, "log-1");
    expect(await fixture.phase(id, "ended")).toMatchObject({ cause: "STOPPED" });
    expect(pids.length).toBeGreaterThan(0);
    await until("the end of all its processes", async () => (await processesOfExecution(home)).length === 0);
  });
});
