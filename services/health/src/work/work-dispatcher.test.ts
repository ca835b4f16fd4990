import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ExecutionReportSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { EndReason, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError } from "@rollcall/errors";
import { silentLogger, startTasks } from "@rollcall/process";
import { createRequestValidator } from "@rollcall/rpc";
import type { NodeReport, NodeWork, NodeWorkQuery, SavedReports, WorkReference } from "@rollcall/store";
import { until } from "@rollcall/testkit/time";
import { BareStream, bareReplica, HELLO, opening } from "../testing/bare-replica.ts";
import { WorkDispatcher } from "./work-dispatcher.ts";
import type { ChangedWork, WorkStore } from "./work-store.ts";

const DIGEST = new Uint8Array(32).fill(7);

/** A store in memory. The test controls how many times its methods fail. */
class FakeWork implements WorkStore {
  readonly lists = new Map<string, NodeWork>();
  readonly reports: NodeReport[] = [];
  readonly asked: NodeWorkQuery[][] = [];
  readonly specs = new Map([[keyOf(DIGEST), Buffer.from("spec")]]);
  changed: ChangedWork[] = [];
  forgotten: string[] = [];
  /** Ids of nodes whose reports are saved only in part. */
  cut: string[] = [];
  failures = 0;
  reads = 0;
  forgettings = 0;

  logId(): string {
    return "log-1";
  }

  async readNodes(queries: readonly NodeWorkQuery[]): Promise<readonly NodeWork[]> {
    this.#fail();
    this.asked.push([...queries]);
    return queries.flatMap(({ nodeId }) => this.lists.get(nodeId) ?? []);
  }

  async changedNodes(): Promise<readonly ChangedWork[]> {
    this.#fail();
    return this.changed.splice(0);
  }

  async readSpecs(digests: readonly Uint8Array[]) {
    this.#fail();
    this.reads += 1;
    return digests.flatMap((digest) => {
      const spec = this.specs.get(keyOf(digest));
      return spec === undefined ? [] : [{ digest: Buffer.from(digest), spec }];
    });
  }

  async saveReports(reports: readonly NodeReport[]): Promise<SavedReports> {
    this.#fail();
    this.reports.push(...reports);
    return { cutNodeIds: this.cut };
  }

  async forgettable(_nodeId: string, ids: readonly string[]): Promise<readonly string[]> {
    this.#fail();
    this.forgettings += 1;
    return ids.filter((id) => this.forgotten.includes(id));
  }

  #fail(): void {
    if (this.failures === 0) return;
    this.failures -= 1;
    throw new Error("the database is away");
  }
}

function keyOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString("hex");
}

function reference(id: string, desired: WorkReference["desired"] = "RUN"): WorkReference {
  return { id, desired, specDigest: Buffer.from(DIGEST), index: 0, ports: {}, gpuUuids: [], reported: false };
}

const changed = (nodeId: string, generation: bigint): ChangedWork => ({ nodeId, generation });

/** A node with an open session, and a WorkDispatcher whose tasks are running. */
function setUp() {
  const { replica, clock } = bareReplica();
  const record = new FakeWork();
  const retry = { baseMs: 1, maxMs: 1 };
  const validator = createRequestValidator([ExecutionReportSchema]);
  const queue = new WorkDispatcher({ record, replica, validator, loops: { clock, retry } });
  const stream = new BareStream();
  const node = replica.take(stream, opening(1), HELLO);
  const tasks = startTasks(queue.tasks, { log: silentLogger, clock });
  const report = (changes: MessageInitShape<typeof ExecutionReportSchema>) =>
    queue.receive(node, { kind: "report", report: create(ExecutionReportSchema, { number: 1n, ...changes }) });
  const sent = (kind: string) => stream.work.filter((frame) => frame.kind === kind);
  return { replica, clock, record, queue, stream, node, tasks, report, sent };
}

describe("WorkDispatcher, what should run", () => {
  it("should send the whole list in parts, then the changes", async () => {
    const { record, queue, node, tasks, sent } = setUp();
    const references = Array.from({ length: 450 }, (_, index) => reference(`e${index}`));
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references });
    queue.opened(node);
    await until("three parts", () => sent("executions").length === 3);
    expect(sent("executions")).toMatchObject([
      { logId: "log-1", generation: 5n, isWhole: true, hasMore: true, references: references.slice(0, 200) },
      { generation: 5n, isWhole: true, hasMore: true, references: references.slice(200, 400) },
      { generation: 5n, isWhole: true, hasMore: false, references: references.slice(400) },
    ]);
    record.lists.set("n1", { nodeId: "n1", generation: 6n, references: [reference("e0", "STOP")] });
    record.changed = [changed("n1", 6n), changed("other", 6n)];
    queue.observe();
    await until("the change", () => sent("executions").length === 4);
    expect(sent("executions")[3]).toMatchObject({ generation: 6n, isWhole: false, references: [{ desired: "STOP" }] });
    expect(record.asked).toEqual([[{ nodeId: "n1", after: 0n }], [{ nodeId: "n1", after: 5n }]]);
    await tasks.close();
  });

  it("should read nothing again for a change that the agent has already been sent", async () => {
    const { record, queue, node, tasks, sent } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [reference("e0")] });
    queue.opened(node);
    await until("the list", () => sent("executions").length === 1);
    record.changed = [changed("n1", 5n)];
    queue.observe();
    await until("the change to be seen", () => record.changed.length === 0);
    record.lists.set("n1", { nodeId: "n1", generation: 6n, references: [reference("e1")] });
    record.changed = [changed("n1", 6n)];
    queue.observe();
    await until("the next change", () => sent("executions").length === 2);
    expect(record.asked).toHaveLength(2);
    await tasks.close();
  });

  it("should send an empty list to a node without work", async () => {
    const { queue, node, tasks, sent } = setUp();
    queue.opened(node);
    await until("an empty list", () => sent("executions").length === 1);
    expect(sent("executions")).toMatchObject([{ generation: 0n, isWhole: true, hasMore: false, references: [] }]);
    await tasks.close();
  });

  it("should read the list again for an agent that did not read, once it does", async () => {
    const { record, queue, stream, node, tasks, sent } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [reference("e0")] });
    stream.isBehind = true;
    queue.opened(node);
    await until("the list to be read", () => record.asked.length === 1);
    stream.isBehind = false;
    queue.drained(node);
    await until("the list to be sent", () => sent("executions").length === 1);
    expect(record.asked[1]).toEqual([{ nodeId: "n1", after: 0n }]);
    await tasks.close();
  });

  it("should continue after an outage of the store, and send nothing to an ended session", async () => {
    const { record, queue, stream, node, tasks, sent, clock, replica } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [reference("e0")] });
    record.failures = 2;
    queue.opened(node);
    await until("the list to be sent", () => {
      clock.advance(10);
      return sent("executions").length === 1;
    });
    const second = new BareStream();
    replica.take(second, opening(2), HELLO);
    record.changed = [changed("n1", 6n)];
    queue.observe();
    await until("the change to be taken in", () => record.changed.length === 0);
    queue.opened(node);
    await until("the second session to be told", () => second.work.length === 1);
    expect(stream.work).toHaveLength(1);
    await tasks.close();
  });
});

describe("WorkDispatcher, specs", () => {
  it("should send specs in the requested order, empty for missing ones", async () => {
    const { record, queue, node, tasks, sent } = setUp();
    queue.opened(node);
    const other = new Uint8Array(32).fill(9);
    queue.receive(node, { kind: "want-specs", digests: [DIGEST, other] });
    await until("both specs", () => sent("spec").length === 2);
    expect(sent("spec")).toMatchObject([
      { digest: DIGEST, spec: Buffer.from("spec") },
      { digest: other, spec: new Uint8Array() },
    ]);
    const { reads } = record;
    queue.receive(node, { kind: "want-specs", digests: [DIGEST] });
    await until("the spec again", () => sent("spec").length === 3);
    expect(record.reads).toBe(reads);
    await tasks.close();
  });

  it("should serve all waiting agents once the store can be read again", async () => {
    const { record, replica, clock, queue, stream, node, tasks } = setUp();
    const others = new BareStream();
    const other = replica.take(others, opening(1, { nodeId: "n2" }), HELLO);
    for (const one of [node, other]) queue.opened(one);
    await until("both lists", () => stream.work.length + others.work.length === 2);
    record.failures = 1;
    for (const one of [node, other]) queue.receive(one, { kind: "want-specs", digests: [DIGEST] });
    await until("a spec each", () => {
      clock.advance(10);
      return [stream, others].every(({ work }) => work.some(({ kind }) => kind === "spec"));
    });
    await tasks.close();
  });

  it("should wait for an agent that does not read, and refuse one that asks for too much", async () => {
    const { queue, stream, node, tasks, sent } = setUp();
    queue.opened(node);
    await until("the list", () => sent("executions").length === 1);
    stream.isBehind = true;
    const digests = Array.from({ length: 200 }, (_, index) => new Uint8Array(32).fill(index));
    queue.receive(node, { kind: "want-specs", digests });
    // Specs that are requested twice count once.
    queue.receive(node, { kind: "want-specs", digests });
    expect(() => queue.receive(node, { kind: "want-specs", digests: [new Uint8Array(32).fill(200)] })).toThrow(
      /200 specs/,
    );
    stream.isBehind = false;
    queue.drained(node);
    await until("all specs", () => sent("spec").length === 200);
    await tasks.close();
  });
});

describe("WorkDispatcher, reports", () => {
  it("should save a report, and acknowledge it then", async () => {
    const { record, queue, node, tasks, report, sent, clock } = setUp();
    queue.opened(node);
    record.failures = 1;
    report({
      ...{ number: 3n, whole: true },
      observations: [
        { id: "e1", state: ObservedState.RUNNING, job: "web" },
        { id: "e2", state: ObservedState.ENDED, endReason: EndReason.EXITED, exitCode: 7, message: "bad luck" },
      ],
    });
    await until("the report to be acknowledged", () => {
      clock.advance(10);
      return sent("report-ack").length === 1;
    });
    expect(sent("report-ack")).toEqual([{ kind: "report-ack", number: 3n }]);
    expect(record.reports).toMatchObject([
      {
        ...{ nodeId: "n1", epoch: 1, number: 3, whole: true },
        executions: [
          { id: "e1", observed: "RUNNING", end: null, exitCode: null, job: "web" },
          { id: "e2", observed: "ENDED", end: "EXITED", exitCode: 7, signal: null, message: "bad luck" },
        ],
      },
    ]);
    await tasks.close();
  });

  it("should let an agent forget an ended execution that its whole report still has", async () => {
    const { record, queue, node, tasks, report, sent } = setUp();
    queue.opened(node);
    record.forgotten = ["e2"];
    const ended = (id: string) => ({ id, state: ObservedState.ENDED, endReason: EndReason.EXITED, exitCode: 0 });
    report({ whole: true, observations: [ended("e1"), ended("e2")] });
    await until("word of it", () =>
      sent("executions").some((frame) => "references" in frame && frame.references.length),
    );
    expect(sent("executions").at(-1)).toMatchObject({ isWhole: false, references: [{ id: "e2", desired: "FORGET" }] });
    await tasks.close();
  });

  it("should let an agent forget ended executions when their job is deleted, whichever report had them", async () => {
    const { record, queue, node, tasks, report, sent } = setUp();
    const forgotten = () => sent("executions").flatMap((frame) => ("references" in frame ? frame.references : []));
    queue.opened(node);
    const ended = (id: string) => ({ id, state: ObservedState.ENDED, endReason: EndReason.EXITED, exitCode: 0 });
    report({ whole: true, observations: [ended("e1")] });
    report({ number: 2n, observations: [ended("e2"), { id: "e3", state: ObservedState.RUNNING }] });
    await until("the list and the reports", () => sent("report-ack").length > 0 && sent("executions").length === 1);
    record.forgotten = ["e1", "e2", "e3"];
    queue.jobsDeleted();
    await until("both to be forgotten", () => forgotten().length === 2);
    expect(forgotten()).toMatchObject([
      { id: "e1", desired: "FORGET" },
      { id: "e2", desired: "FORGET" },
    ]);
    // Each order to forget is sent once.
    const { forgettings } = record;
    queue.jobsDeleted();
    const reports = record.reports.length;
    report({ number: 3n, observations: [ended("e3")] });
    await until("the last report", () => record.reports.length > reports);
    queue.jobsDeleted();
    await until("the last to be forgotten", () => forgotten().length === 3);
    expect(record.forgettings).toBe(forgettings + 1);
    await tasks.close();
  });

  it("should repeat this once the whole list was sent, because an agent accepts no changes before", async () => {
    const { record, queue, stream, node, tasks, report, sent } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [] });
    record.forgotten = ["e2"];
    stream.isBehind = true;
    queue.opened(node);
    await until("the list to be read", () => record.asked.length === 1);
    report({ whole: true, observations: [{ id: "e2", state: ObservedState.ENDED, endReason: EndReason.EXITED }] });
    await until("the report to be saved", () => record.reports.length === 1);
    stream.isBehind = false;
    queue.drained(node);
    await until("the list, and the word to forget", () => sent("executions").length === 2);
    expect(sent("executions")).toMatchObject([
      { isWhole: true, references: [] },
      { isWhole: false, generation: 5n, references: [{ id: "e2", desired: "FORGET" }] },
    ]);
    await tasks.close();
  });

  it("should ask for a report when a Beat names another digest", async () => {
    const { queue, node, tasks, report, sent } = setUp();
    queue.opened(node);
    report({ whole: true, digest: 5n });
    queue.onDigest(node, 5n);
    expect(sent("executions")).toEqual([]);
    queue.onDigest(node, 6n);
    expect(sent("executions")).toMatchObject([{ isReportWanted: true, isWhole: false, references: [] }]);
    await tasks.close();
  });

  it("should ask again with the next Beat when the agent did not read, and only once when it did", async () => {
    const { queue, stream, node, tasks, report, sent } = setUp();
    queue.opened(node);
    report({ whole: true, digest: 5n });
    stream.isBehind = true;
    queue.onDigest(node, 6n);
    stream.isBehind = false;
    const asked = () => sent("executions").filter((frame) => "isReportWanted" in frame && frame.isReportWanted);
    expect(asked()).toEqual([]);
    queue.onDigest(node, 6n);
    queue.onDigest(node, 6n);
    expect(asked()).toHaveLength(1);
    await tasks.close();
  });

  it("should let an agent forget once it reads again", async () => {
    const { record, queue, stream, node, tasks, report, sent } = setUp();
    queue.opened(node);
    await until("the list", () => sent("executions").length === 1);
    record.forgotten = ["e2"];
    stream.isBehind = true;
    report({ whole: true, observations: [{ id: "e2", state: ObservedState.ENDED, endReason: EndReason.EXITED }] });
    await until("the end to be asked for", () => record.forgettings > 0);
    stream.isBehind = false;
    queue.drained(node);
    await until("word of it", () =>
      sent("executions").some((frame) => "references" in frame && frame.references.some(({ id }) => id === "e2")),
    );
    await tasks.close();
  });

  it.each([
    ["an id that is none", { observations: [{ id: "../x", state: ObservedState.RUNNING }] }, "observations[0].id"],
    ["no state", { observations: [{ id: "e1" }] }, "observations[0].state"],
    ["no number", { number: 0n }, "execution_report.number"],
    [
      "a NUL",
      { observations: [{ id: "e1", state: ObservedState.RUNNING, message: "\u0000" }] },
      "observations[0].message",
    ],
    ["an empty id", { observations: [{ id: "", state: ObservedState.RUNNING }] }, "observations[0].id"],
  ])("should refuse a report with %s", async (_, changes, field) => {
    const { queue, node, tasks, report, record } = setUp();
    queue.opened(node);
    const failure = (() => {
      try {
        report(changes);
      } catch (error) {
        return describeError(error);
      }
      return null;
    })();
    expect(failure).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(JSON.stringify(failure)).toContain(field);
    expect(record.reports).toEqual([]);
    await tasks.close();
  });

  it("should ignore reports of an agent that runs no work", async () => {
    const { node, tasks, report, record } = setUp();
    report({ observations: [{ id: "e1", state: ObservedState.RUNNING }] });
    expect(node.work).toBeNull();
    await tasks.close();
    expect(record.reports).toEqual([]);
  });
});
