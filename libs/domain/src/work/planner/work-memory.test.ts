import { describe, expect, it } from "@jest/globals";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";

describe("WorkMemory.plan()", () => {
  it("should place the executions of a job, and then have nothing to do", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 5 }));
    const plan = fleet.plan();
    expect(plan.executions.map(({ kind, after }) => [kind, after.index, after.nodeId])).toEqual([
      ["PLACED", 0, "a"],
      ["PLACED", 1, "a"],
      ["PLACED", 2, "a"],
      ["PLACED", 3, "a"],
      ["PLACED", 4, "b"],
    ]);
    expect(fleet.plan()).toMatchObject({ executions: [], jobs: [], drains: [], more: false });
  });

  it("should place a bounded number per plan, and the rest in the next one", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 6 }));
    expect(fleet.plan(4)).toMatchObject({ more: true, executions: { length: 4 } });
    expect(fleet.plan(4)).toMatchObject({ more: false, executions: { length: 2 } });
  });

  it("should end a batch job when all of its executions have completed", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ type: "batch", count: 6 }));
    fleet.plan();
    expect(fleet.running()).toHaveLength(4);
    fleet.exit(fleet.running(), 0);
    fleet.plan();
    expect(fleet.running()).toHaveLength(2);
    fleet.exit(fleet.running(), 0);
    expect(fleet.plan().jobs).toMatchObject([{ after: { state: "COMPLETED" } }]);
    expect(fleet.plan()).toMatchObject({ executions: [], jobs: [] });
  });

  it("should know nothing of an ended job that was removed when another has its name", () => {
    const fleet = new TestFleet([workNode("a")]);
    for (const owner of ["token:ci", "token:other"]) {
      fleet.submit(jobSpec({ type: "ops", count: 0, owner }));
      fleet.plan();
      expect(fleet.running()).toHaveLength(1);
      fleet.exit(fleet.running(), 0);
      expect(fleet.plan().jobs).toMatchObject([{ after: { state: "COMPLETED" } }]);
      fleet.memory.removeJob("web");
      fleet.jobs.clear();
    }
  });

  it("should retry what failed after growing waits, then give up", () => {
    const fleet = new TestFleet([workNode("a")]);
    const retry = { attempts: 2, backoff: "exponential", intervalMs: 5_000, maxMs: 300_000 } as const;
    fleet.submit(jobSpec({ type: "batch", retry }));
    for (const [attempt, waitMs] of [5_000, 10_000].entries()) {
      fleet.plan();
      expect(fleet.running()).toMatchObject([{ attempt }]);
      fleet.exit(fleet.running(), 1);
      const { executions, wakeAtMs } = fleet.plan();
      expect(executions).toMatchObject([{ kind: "ENDED", after: { state: "FAILED", reason: "EXITED" } }]);
      expect(wakeAtMs).toBe(fleet.nowMs + waitMs);
      fleet.pass(waitMs);
    }
    fleet.plan();
    fleet.exit(fleet.running(), 1);
    expect(fleet.plan().jobs).toMatchObject([{ after: { state: "FAILED", message: "1 of 1 execution failed" } }]);
  });

  it("should avoid a node after two failures there, while another fits", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ retry: { attempts: null, backoff: "constant", intervalMs: 1, maxMs: 1 } }));
    const nodes: (string | undefined)[] = [];
    for (let failure = 0; failure < 4; failure += 1) {
      fleet.plan();
      nodes.push(fleet.running()[0]?.nodeId);
      fleet.exit(fleet.running(), 1);
      fleet.plan();
      fleet.pass(1);
    }
    expect(nodes).toEqual(["a", "a", "b", "b"]);
  });

  it.each(["batch", "service"] as const)(
    "should replace a lost execution of a %s once reactions are allowed",
    (type) => {
      const fleet = new TestFleet([workNode("a"), workNode("b")]);
      fleet.submit(jobSpec({ type }));
      fleet.plan();
      fleet.put("a", { health: "UNHEALTHY", connection: "DISCONNECTED" });
      expect(fleet.plan().executions).toEqual([]);
      fleet.put("a", { health: "UNHEALTHY", connection: "DISCONNECTED", reactionAllowed: true });
      const { executions } = fleet.plan();
      expect(executions).toMatchObject([
        { kind: "REPLACING", after: { nodeId: "a", desired: "STOP", state: "LOST", holds: true } },
        { kind: "PLACED", after: { nodeId: "b" } },
      ]);
      expect(executions[0]?.after.replacedBy).toBe(executions[1]?.after.id);
      fleet.put("a", {});
      expect(fleet.plan().executions).toEqual([]);
      fleet.stopAll("a");
      expect(fleet.plan().executions).toMatchObject([{ kind: "ENDED", after: { state: "REPLACED", holds: false } }]);
    },
  );

  it("should wait lost_after, and keep what returns before", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ loss: { ...jobSpec().loss, lostAfterMs: 60_000 } }));
    fleet.plan();
    fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true });
    expect(fleet.plan()).toMatchObject({ executions: [{ kind: "LOST" }], wakeAtMs: fleet.nowMs + 60_000 });
    fleet.pass(59_999);
    expect(fleet.plan().executions).toEqual([]);
    fleet.put("a", {});
    expect(fleet.plan().executions).toMatchObject([{ kind: "FOUND", after: { state: "LIVE", replacedBy: null } }]);
    fleet.pass(60_000);
    expect(fleet.plan().executions).toEqual([]);
  });

  it("should replace nothing while its node is lost once more and reactions to that are not allowed", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ loss: { ...jobSpec().loss, lostAfterMs: 60_000 } }));
    fleet.plan();
    fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true });
    expect(fleet.plan()).toMatchObject({ executions: [{ kind: "LOST" }], lostNodes: ["a"] });
    // Let the node return for a moment between two reviews, and lose it again.
    fleet.put("a", { health: "UNHEALTHY" });
    fleet.pass(60_000);
    expect(fleet.plan().executions).toEqual([]);
    fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true });
    const { executions, lostNodes } = fleet.plan();
    expect(executions).toMatchObject([{ kind: "PLACED" }, { kind: "REPLACING" }]);
    expect(lostNodes).toEqual(["a"]);
  });

  it("should change fewer executions in one plan if it can place fewer", () => {
    const names = Array.from({ length: 12 }, (_, number) => `n${number}`);
    const fleet = new TestFleet([...names, "spare"].map((name) => workNode(name)));
    fleet.submit(jobSpec({ type: "daemon" }));
    fleet.plan();
    for (const name of names) fleet.put(name, { health: "UNHEALTHY", reactionAllowed: true });
    const plans = [1, 1, 1].map(() => fleet.plan(1));
    expect(plans.map(({ executions, lostNodes }) => [executions.length, lostNodes.length])).toEqual([
      [5, 5],
      [5, 5],
      [2, 2],
    ]);
    expect(plans.map(({ more }) => more)).toEqual([true, true, false]);
  });

  it.each([
    [true, "STOPPING", "a"],
    [false, "STOPPING", "b"],
  ])("should keep the original unless its replacement is ready (%j)", (isReplacementReady, kind, stopped) => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ loss: { ...jobSpec().loss, reconcile: "keep-original" } }));
    fleet.plan();
    fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true });
    expect(fleet.plan().executions).toMatchObject([
      { kind: "REPLACING", after: { desired: "RUN" } },
      { kind: "PLACED", after: { nodeId: "b" } },
    ]);
    if (isReplacementReady) fleet.ready("b");
    fleet.put("a", {});
    const { executions } = fleet.plan();
    expect(executions).toContainEqual(
      expect.objectContaining({ kind, after: expect.objectContaining({ nodeId: stopped, desired: "STOP" }) }),
    );
    expect(fleet.running().map(({ nodeId }) => nodeId)).toEqual([stopped === "a" ? "b" : "a"]);
  });

  it("should not replace where the job says so", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ loss: { ...jobSpec().loss, replace: false } }));
    fleet.plan();
    fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true });
    expect(fleet.plan().executions).toMatchObject([{ kind: "LOST" }]);
    fleet.put("a", {});
    expect(fleet.plan().executions).toMatchObject([{ kind: "FOUND" }]);
  });

  it("should fail an ops job's execution whose node is lost, and keep its grant until the node confirms", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ type: "ops", retry: { ...jobSpec().retry, attempts: 0 } }));
    expect(fleet.plan()).toMatchObject({ executions: { length: 2 } });
    fleet.put("a", { health: "UNHEALTHY", reactionAllowed: true });
    expect(fleet.plan().executions).toMatchObject([
      { kind: "ENDED", after: { nodeId: "a", state: "FAILED", reason: "NODE_LOST", desired: "STOP", holds: true } },
    ]);
    fleet.exit(fleet.running(), 0);
    expect(fleet.plan().jobs).toMatchObject([{ after: { state: "FAILED" } }]);
    fleet.put("a", {});
    fleet.stopAll("a");
    expect(fleet.plan().executions).toMatchObject([{ kind: "FREED", after: { holds: false, desired: "FORGET" } }]);
  });

  it("should run daemons on every node that matches, now and later, and evict them when it no longer does", () => {
    const zone = { grantedLabels: new Map([["zone", "x"]]) };
    const fleet = new TestFleet([workNode("a", zone), workNode("b")]);
    fleet.submit(jobSpec({ type: "daemon", selector: "zone = x" }));
    fleet.plan();
    expect(fleet.running().map(({ nodeId }) => nodeId)).toEqual(["a"]);
    fleet.put("b", zone);
    fleet.put("c", zone);
    fleet.plan();
    expect(fleet.running().map(({ nodeId }) => nodeId)).toEqual(["a", "b", "c"]);
    fleet.put("b", {});
    expect(fleet.plan().executions).toMatchObject([
      { kind: "STOPPING", after: { nodeId: "b", reason: "NODE_LABELS_CHANGED" } },
    ]);
    fleet.put("a", { ...zone, health: "UNHEALTHY", reactionAllowed: true });
    expect(fleet.plan().executions).toMatchObject([{ kind: "LOST", after: { nodeId: "a" } }]);
    fleet.put("a", zone);
    expect(fleet.plan().executions).toMatchObject([{ kind: "FOUND", after: { nodeId: "a" } }]);
    fleet.end(fleet.on("a"), { end: "GONE" });
    expect(fleet.plan().executions).toMatchObject([
      { kind: "ENDED", after: { nodeId: "a", state: "REPLACED", reason: "GONE" } },
      { kind: "PLACED", after: { nodeId: "a" } },
    ]);
  });

  it.each([
    ["service", "STOPPED", true],
    ["batch", "STOPPED", true],
    ["ops", "FAILED", false],
    ["daemon", "STOPPED", false],
  ] as const)("should end a %s's execution on a node that is deleted as %s", (type, state, isMoved) => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ type, retry: { ...jobSpec().retry, attempts: 0 } }));
    fleet.plan();
    if (type === "service" || type === "batch") fleet.put("b", {});
    fleet.remove("a");
    const { executions } = fleet.plan();
    expect(executions[0]).toMatchObject({ kind: "ENDED", after: { state, reason: "NODE_DELETED", holds: false } });
    expect(executions.slice(1).map(({ after }) => after.nodeId)).toEqual(isMoved ? ["b"] : []);
  });

  it("should leave daemons where they are while their node offers nothing, and place none there", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ type: "daemon", user: "web" }));
    fleet.plan();
    expect(fleet.running()).toHaveLength(1);
    fleet.put("a", { capacity: null });
    fleet.put("b", { capacity: null });
    expect(fleet.plan().executions).toEqual([]);
    fleet.put("a", {});
    expect(fleet.plan().executions).toEqual([]);
  });

  it("should roll a service to a new version a few at a time", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 3 }));
    fleet.plan();
    fleet.ready("a");
    fleet.plan();
    fleet.pass(10_000);
    fleet.plan();
    fleet.submit(jobSpec({ count: 3, stopGraceMs: 1 }));
    for (let rolled = 1; rolled <= 3; rolled += 1) {
      const { executions } = fleet.plan();
      expect(executions.map(({ kind }) => kind).sort()).toEqual(["PLACED", "REPLACING"]);
      expect(fleet.plan().executions).toEqual([]);
      fleet.ready("a");
      fleet.ready("b");
      fleet.plan();
      fleet.pass(9_999);
      expect(fleet.plan().executions).toEqual([]);
      fleet.pass(1);
    }
    expect(fleet.plan().executions).toEqual([]);
    expect(fleet.running().map(({ version }) => version)).toEqual([2, 2, 2]);
  });

  it.each([
    // An execution that failed is replaced by the previous version. An execution that is not ready stays.
    ["fails", (fleet: TestFleet) => fleet.exit([fleet.newest()], 1), 2],
    ["is not ready in time", (fleet: TestFleet) => fleet.pass(300_000), 1],
  ])("should halt an update when a new execution %s, and say so", (_, fail, ofVersion1) => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 2 }));
    fleet.plan();
    fleet.ready("a");
    fleet.plan();
    fleet.pass(10_000);
    fleet.submit(jobSpec({ count: 2, stopGraceMs: 1 }));
    fleet.plan();
    fail(fleet);
    const { jobs } = fleet.plan();
    expect(jobs).toMatchObject([{ after: { halted: expect.any(String), state: "ACTIVE" } }]);
    expect(jobs[0]?.after.message).toContain("the update halted: execution");
    fleet.pass(1_000_000);
    fleet.plan();
    expect(fleet.running().filter(({ version }) => version === 1)).toHaveLength(ofVersion1);
  });

  it("should stop the old one first where there is no room for both", () => {
    const fleet = new TestFleet([workNode("a")]);
    const resources = { ...jobSpec().resources, ports: { http: 80 } };
    fleet.submit(jobSpec({ resources }));
    fleet.plan();
    fleet.submit(jobSpec({ resources, stopGraceMs: 1 }));
    expect(fleet.plan().executions).toMatchObject([{ kind: "STOPPING", after: { reason: "JOB_UPDATED" } }]);
    fleet.stopAll("a");
    expect(fleet.plan().executions).toMatchObject([{ kind: "ENDED" }, { kind: "PLACED", after: { version: 2 } }]);
  });

  it("should scale, stop and start again", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ count: 3 }));
    fleet.plan();
    fleet.change("web", { count: 1 });
    expect(fleet.plan().executions.map(({ kind, after }) => [kind, after.index, after.reason])).toEqual([
      ["STOPPING", 1, "SCALED_DOWN"],
      ["STOPPING", 2, "SCALED_DOWN"],
    ]);
    fleet.change("web", { count: 2 });
    expect(fleet.plan().executions).toMatchObject([{ kind: "PLACED", after: { index: 1 } }]);
    fleet.change("web", { state: "STOPPED" });
    expect(fleet.plan().executions).toMatchObject([{ kind: "STOPPING" }, { kind: "STOPPING" }]);
    fleet.stopAll("a");
    expect(fleet.plan().executions.map(({ after }) => after.state)).toEqual(Array.from({ length: 4 }, () => "STOPPED"));
    fleet.restart("web");
    expect(fleet.plan().executions).toMatchObject([{ kind: "PLACED" }, { kind: "PLACED" }]);
  });

  it("should let replicas without a node wait, and place them as soon as a node fits", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ count: 6 }));
    fleet.plan();
    expect(fleet.running()).toHaveLength(4);
    fleet.put("b", {});
    fleet.plan();
    expect(fleet.running()).toHaveLength(6);
  });

  it("should fail a batch job at once that no node could ever run, and after its queue timeout", () => {
    const fleet = new TestFleet([workNode("a")]);
    const resources = { ...jobSpec().resources, millicores: 5_000 };
    fleet.submit(jobSpec({ type: "batch", count: 2, resources }));
    const message = "2 of 2 executions failed, 2 of them because no node fits (1 of 1 node: insufficient cores)";
    expect(fleet.plan().jobs).toMatchObject([{ after: { state: "FAILED", message } }]);
    fleet.submit(jobSpec({ name: "late", type: "batch", resources, queueTimeoutMs: 60_000 }));
    expect(fleet.plan()).toMatchObject({ jobs: [], wakeAtMs: fleet.nowMs + 60_000 });
    fleet.pass(60_000);
    expect(fleet.plan().jobs).toMatchObject([{ after: { name: "late", state: "FAILED" } }]);
  });

  it("should revert changes that were not committed", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ count: 5 }));
    const plan = fleet.memory.plan(fleet.input());
    fleet.memory.revert(plan);
    expect(fleet.taken()).toEqual({ a: 0, b: 0 });
    expect(fleet.plan().executions.map(({ after }) => [after.index, after.nodeId])).toEqual(
      plan.executions.map(({ after }) => [after.index, after.nodeId]),
    );
  });

  it("should run nothing again of a job whose end was not committed", () => {
    const fleet = new TestFleet([workNode("a")]);
    fleet.submit(jobSpec({ type: "batch", count: 3 }));
    fleet.plan();
    fleet.exit(fleet.running().slice(1), 0);
    fleet.plan();
    fleet.exit(fleet.running(), 0);
    const plan = fleet.memory.plan(fleet.input());
    expect(plan.jobs).toMatchObject([{ after: { state: "COMPLETED" } }]);
    fleet.memory.revert(plan);
    const again = fleet.plan();
    expect(again.executions).toMatchObject([{ kind: "ENDED", after: { state: "COMPLETED" } }]);
    expect(again.jobs).toMatchObject([{ after: { state: "COMPLETED" } }]);
  });

  it("should count a failure once, however often its end is planned", () => {
    const fleet = new TestFleet([workNode("a"), workNode("b")]);
    fleet.submit(jobSpec({ retry: { attempts: null, backoff: "constant", intervalMs: 1, maxMs: 1 } }));
    fleet.plan();
    fleet.exit(fleet.running(), 1);
    for (let time = 0; time < 3; time += 1) fleet.memory.revert(fleet.memory.plan(fleet.input()));
    fleet.plan();
    expect(fleet.memory.state.jobs.get("web")?.failures).toEqual(new Map([["a", 1]]));
    fleet.pass(1);
    expect(fleet.plan().executions).toMatchObject([{ kind: "PLACED", after: { nodeId: "a" } }]);
  });
});
