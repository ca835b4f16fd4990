import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ExecutionState } from "../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { needsRoot } from "../../libs/testkit/src/jest/needs.ts";
import { until } from "../../libs/testkit/src/time.ts";
import { endProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";
import { RUNS_WORK, WorkFixture } from "../../services/rollcall/src/testing/work-fixture.ts";
import { AgentPath } from "./agent-path.ts";

const MANY = 100;
const LIMIT_MS = 300_000;
const NODES = ["alpha", "beta", "gamma"];

// Only root can run executions as another user, so skip these tests otherwise.
const { describe: asRoot } = needsRoot();

asRoot("work on real machines", () => {
  let fixture: WorkFixture;
  const paths = new Map<string, AgentPath>();

  beforeAll(async () => {
    fixture = await WorkFixture.start();
    for (const [index, name] of NODES.entries()) {
      const path = await AgentPath.open(fixture, `127.0.0.${11 + index}`);
      paths.set(name, path);
      await fixture.startAgent(name, path.server);
    }
  }, LIMIT_MS);

  afterAll(async () => {
    await fixture.dispose();
    for (const path of paths.values()) await path.close();
  }, LIMIT_MS);

  function pathOf(name: string): AgentPath {
    const path = paths.get(name);
    if (path === undefined) throw new Error(`there is no node ${name}`);
    return path;
  }

  it.each([
    ["replaced", "after its replacement", undefined],
    ["replaced", "after its replacement", { seconds: 2n }],
    ["kept", "before one was made", { seconds: 600n }],
  ] as const)(
    "should leave one execution, %s, when a node that was cut off is back %s (lostAfter %j)",
    async (outcome, _, lostAfter) => {
      const job = fixture.service(lostAfter === undefined ? {} : { loss: { lostAfter } });
      await job.submit();
      const [first] = await fixture.ready(job);
      const lost = first?.nodeId ?? "";
      pathOf(lost).cut(true);
      if (outcome === "replaced") {
        const second = await until("a replacement", async () => {
          const ready = (await fixture.executions(job)).filter(({ state }) => state === ExecutionState.READY);
          return ready.find(({ previousId }) => previousId === first?.id);
        });
        expect(second.nodeId).not.toBe(lost);
        // Executions on the disconnected machine keep running.
        expect(await fixture.running(job)).toHaveLength(2);
      } else {
        await until("it to be lost", async () => {
          return (await fixture.executions(job)).some(({ state }) => state === ExecutionState.LOST);
        });
        expect(await fixture.running(job)).toHaveLength(1);
      }
      pathOf(lost).cut(false);
      await fixture.client.becomes(lost, "APPROVED CONNECTED HEALTHY");
      const survivor = await fixture.survivor(job);
      expect(survivor?.id === first?.id).toBe(outcome === "kept");
      await fixture.stopped(job);
    },
    LIMIT_MS,
  );

  it(
    `should move none of ${MANY} executions and restart none while its agent is upgraded and its keeper killed`,
    async () => {
      const job = fixture.service({ count: MANY, constraints: { node: "alpha" } });
      await job.submit();
      const ids = (await fixture.ready(job, MANY)).map(({ id }) => id).sort();
      // An execution is ready when its launcher has started. Its program starts shortly afterwards.
      const pids = await until(`${MANY} programs`, async () => {
        const found = await fixture.running(job);
        return found.length === MANY && found;
      });
      const [keeper] = await fixture.keepers("alpha");
      expect(await fixture.agent("alpha").killed("SIGTERM")).toBe(0);
      // The keeper has other settings, as a keeper of another version would, so a new keeper replaces it.
      await fixture.startAgent("alpha", pathOf("alpha").server, [...RUNS_WORK, "--set", "Work.Directories=/srv"]);
      const next = await until("another keeper", async () => {
        const [found] = await fixture.keepers("alpha");
        return found !== undefined && found !== keeper && found;
      });
      expect((await fixture.ready(job, MANY)).map(({ id }) => id).sort()).toEqual(ids);
      expect(await fixture.running(job)).toEqual(pids);
      endProcess(next);
      await until("a keeper after it", async () => (await fixture.keepers("alpha")).some((pid) => pid !== next));
      expect((await fixture.ready(job, MANY)).map(({ id }) => id).sort()).toEqual(ids);
      expect(await fixture.running(job)).toEqual(pids);
      await fixture.stopped(job);
    },
    LIMIT_MS,
  );

  it(
    "should stop what may not run without a control plane, although its agent is dead",
    async () => {
      const loss = { stopOnAgentAfter: { seconds: 3n }, lostAfter: { seconds: 600n } };
      const job = fixture.service({ constraints: { node: "beta" }, loss });
      await job.submit();
      const [first] = await fixture.ready(job);
      expect(await fixture.running(job)).toHaveLength(1);
      await fixture.agent("beta").killed();
      await until("its end", async () => (await fixture.running(job)).length === 0);
      await fixture.startAgent("beta", pathOf("beta").server);
      await until("its end to be recorded", async () => {
        const found = (await fixture.executions(job)).find(({ id }) => id === first?.id);
        return found?.state === ExecutionState.FAILED && found.reason === "CONTROL_PLANE_LOST";
      });
      await fixture.stopped(job);
    },
    LIMIT_MS,
  );

  it(
    "should end a drain of a node that came back with its executors off, and run what is wanted elsewhere",
    async () => {
      const job = fixture.service({ selector: "" });
      await job.submit();
      const [first] = await fixture.ready(job);
      const node = first?.nodeId ?? "";
      expect(await fixture.agent(node).killed("SIGTERM")).toBe(0);
      await fixture.startAgent(node, pathOf(node).server, []);
      const drained = fixture.rollcall("node", "drain", node, "--deadline", "5m");
      expect([await drained.exit(), drained.err]).toEqual([0, expect.any(String)]);
      const survivor = await fixture.survivor(job);
      expect(survivor?.nodeId).not.toBe(node);
      await fixture.stopped(job);
    },
    LIMIT_MS,
  );
});
