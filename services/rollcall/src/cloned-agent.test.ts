import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ConnectionState, HoldKind } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import type { CountedJob } from "./testing/work-fixture.ts";
import { WorkFixture } from "./testing/work-fixture.ts";

// Only root can run executions as another user.
const { describe: asRoot } = needsRoot();

/** Time limit of the test. Known clones replace each other every 30 to 75 s. */
const PATIENCE_MS = 240_000;
/** Number of takeovers after which each agent has had the session once more. */
const TAKEOVERS = 2n;

asRoot("two agents that share a copied state directory", () => {
  let fixture: WorkFixture;
  let job: CountedJob;

  beforeAll(async () => {
    fixture = await WorkFixture.start();
    await fixture.startAgent("alpha");
    await fixture.copyState("alpha", "copy");
    job = fixture.service({ queueTimeout: { seconds: 60n } });
    await job.submit();
    await fixture.ready(job);
  });

  afterAll(() => fixture.dispose());

  const eventsOf = async (type: string) =>
    (await fixture.client.events("alpha")).filter((event) => event.type === type);
  const said = async (...words: readonly string[]) => {
    const verb = fixture.rollcall(...words);
    return { code: await verb.exit(), out: verb.out };
  };

  it("should be noticed within seconds, shown with both addresses, and kept from new work", async () => {
    fixture.startCopy("alpha", "copy");
    await until("the event", async () => (await eventsOf("node.identity.duplicated")).length > 0);
    const node = await until("the hold", async () => {
      const found = await fixture.client.node("alpha");
      return found?.scheduling?.holds.some(({ kind }) => kind === HoldKind.IDENTITY) === true && found;
    });
    const addresses = node.duplicateAgents.map(({ address }) => address);
    expect(new Set(addresses).size).toBe(2);
    for (const words of [["node", "why", "alpha"], ["node", "describe", "alpha"], ["doctor"]]) {
      const { out } = await said(...words);
      expect(out).toMatch(/two agents use (its|this) identity/);
      expect(out.match(/127\.0\.0\.1:\d+/g)?.length).toBeGreaterThanOrEqual(2);
    }
    expect((await said("doctor")).code).not.toBe(0);
  });

  it("should add no process and report no reboot while they take the session from each other", async () => {
    const before = await fixture.client.epoch("alpha");
    await until(
      "more takeovers",
      async () => {
        expect((await fixture.running(job)).length).toBeLessThanOrEqual(1);
        return (await fixture.client.epoch("alpha")) >= before + TAKEOVERS;
      },
      PATIENCE_MS,
    );
    expect(await fixture.running(job)).toHaveLength(1);
    expect(await fixture.executions(job)).toMatchObject([{ state: ExecutionState.READY }]);
    expect(await eventsOf("node.rebooted")).toEqual([]);
    expect(await eventsOf("node.identity.duplicated")).toHaveLength(1);
  }, 300_000);

  it("should leave nothing running that is not shown, once only one of them is left", async () => {
    await fixture.agent("copy").killed();
    await until(
      "the first agent to be back",
      async () => (await fixture.client.node("alpha"))?.connection?.state === ConnectionState.CONNECTED,
      PATIENCE_MS,
    );
    await fixture.stopped(job);
    await until("the end to be shown", async () => {
      const states = (await fixture.executions(job)).map(({ state }) => state);
      return states.every((state) => state === ExecutionState.STOPPED);
    });
  }, 300_000);
});
