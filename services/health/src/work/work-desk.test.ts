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
import { WorkDesk } from "./work-desk.ts";
import type { ChangedWork, WorkRecord } from "./work-record.ts";

const DIGEST = new Uint8Array(32).fill(7);

/** A record in memory; it fails as often as a test says. */
class FakeWork implements WorkRecord {
  readonly lists = new Map<string, NodeWork>();
  readonly reports: NodeReport[] = [];
  readonly asked: NodeWorkQuery[][] = [];
  readonly specs = new Map([[keyOf(DIGEST), Buffer.from("spec")]]);
  changed: ChangedWork[] = [];
  forgotten: string[] = [];
  /** Nodes of which not all is recorded. */
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
    throw new Error("the record is away");
  }
}

function keyOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString("hex");
}

function reference(id: string, desired: WorkReference["desired"] = "RUN"): WorkReference {
  return { id, desired, specDigest: Buffer.from(DIGEST), index: 0, ports: {}, gpuUuids: [], reported: false };
}

const changed = (nodeId: string, generation: bigint): ChangedWork => ({ nodeId, generation });

/** A node whose session is open, and a desk with its tasks at work. */
function setUp() {
  const { replica, clock } = bareReplica();
  const record = new FakeWork();
  const retry = { baseMs: 1, maxMs: 1 };
  const validator = createRequestValidator([ExecutionReportSchema]);
  const desk = new WorkDesk({ record, replica, validator, loops: { clock, retry } });
  const stream = new BareStream();
  const node = replica.take(stream, opening(1), HELLO);
  const tasks = startTasks(desk.tasks, { log: silentLogger, clock });
  const report = (changes: MessageInitShape<typeof ExecutionReportSchema>) =>
    desk.receive(node, { kind: "report", report: create(ExecutionReportSchema, { number: 1n, ...changes }) });
  const sent = (kind: string) => stream.work.filter((frame) => frame.kind === kind);
  return { replica, clock, record, desk, stream, node, tasks, report, sent };
}

describe("WorkDesk, what should run", () => {
  it("should tell the whole list in parts, then what has changed", async () => {
    const { record, desk, node, tasks, sent } = setUp();
    const references = Array.from({ length: 450 }, (_, index) => reference(`e${index}`));
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references });
    desk.opened(node);
    await until("three parts", () => sent("executions").length === 3);
    expect(sent("executions")).toMatchObject([
      { logId: "log-1", generation: 5n, isWhole: true, hasMore: true, references: references.slice(0, 200) },
      { generation: 5n, isWhole: true, hasMore: true, references: references.slice(200, 400) },
      { generation: 5n, isWhole: true, hasMore: false, references: references.slice(400) },
    ]);
    record.lists.set("n1", { nodeId: "n1", generation: 6n, references: [reference("e0", "STOP")] });
    record.changed = [changed("n1", 6n), changed("other", 6n)];
    desk.observe();
    await until("the change", () => sent("executions").length === 4);
    expect(sent("executions")[3]).toMatchObject({ generation: 6n, isWhole: false, references: [{ desired: "STOP" }] });
    expect(record.asked).toEqual([[{ nodeId: "n1", after: 0n }], [{ nodeId: "n1", after: 5n }]]);
    await tasks.close();
  });

  it("should read nothing again for a change that the agent has already been sent", async () => {
    const { record, desk, node, tasks, sent } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [reference("e0")] });
    desk.opened(node);
    await until("the list", () => sent("executions").length === 1);
    record.changed = [changed("n1", 5n)];
    desk.observe();
    await until("the change to be seen", () => record.changed.length === 0);
    record.lists.set("n1", { nodeId: "n1", generation: 6n, references: [reference("e1")] });
    record.changed = [changed("n1", 6n)];
    desk.observe();
    await until("the next change", () => sent("executions").length === 2);
    expect(record.asked).toHaveLength(2);
    await tasks.close();
  });

  it("should tell a node without work that it has none", async () => {
    const { desk, node, tasks, sent } = setUp();
    desk.opened(node);
    await until("an empty list", () => sent("executions").length === 1);
    expect(sent("executions")).toMatchObject([{ generation: 0n, isWhole: true, hasMore: false, references: [] }]);
    await tasks.close();
  });

  it("should read again for an agent that did not read, once it has", async () => {
    const { record, desk, stream, node, tasks, sent } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [reference("e0")] });
    stream.isBehind = true;
    desk.opened(node);
    await until("the list to be read", () => record.asked.length === 1);
    stream.isBehind = false;
    desk.drained(node);
    await until("the list to be sent", () => sent("executions").length === 1);
    expect(record.asked[1]).toEqual([{ nodeId: "n1", after: 0n }]);
    await tasks.close();
  });

  it("should go on after the record was away, and tell nothing to a session that is over", async () => {
    const { record, desk, stream, node, tasks, sent, clock, replica } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [reference("e0")] });
    record.failures = 2;
    desk.opened(node);
    await until("the list to be sent", () => {
      clock.advance(10);
      return sent("executions").length === 1;
    });
    const second = new BareStream();
    replica.take(second, opening(2), HELLO);
    record.changed = [changed("n1", 6n)];
    desk.observe();
    await until("the change to be taken in", () => record.changed.length === 0);
    desk.opened(node);
    await until("the second session to be told", () => second.work.length === 1);
    expect(stream.work).toHaveLength(1);
    await tasks.close();
  });
});

describe("WorkDesk, specs", () => {
  it("should send specs in the order asked for, empty for one that is not there", async () => {
    const { record, desk, node, tasks, sent } = setUp();
    desk.opened(node);
    const other = new Uint8Array(32).fill(9);
    desk.receive(node, { kind: "want-specs", digests: [DIGEST, other] });
    await until("both specs", () => sent("spec").length === 2);
    expect(sent("spec")).toMatchObject([
      { digest: DIGEST, spec: Buffer.from("spec") },
      { digest: other, spec: new Uint8Array() },
    ]);
    const { reads } = record;
    desk.receive(node, { kind: "want-specs", digests: [DIGEST] });
    await until("the spec again", () => sent("spec").length === 3);
    expect(record.reads).toBe(reads);
    await tasks.close();
  });

  it("should serve all agents that wait once the record can be read again", async () => {
    const { record, replica, clock, desk, stream, node, tasks } = setUp();
    const others = new BareStream();
    const other = replica.take(others, opening(1, { nodeId: "n2" }), HELLO);
    for (const one of [node, other]) desk.opened(one);
    await until("both lists", () => stream.work.length + others.work.length === 2);
    record.failures = 1;
    for (const one of [node, other]) desk.receive(one, { kind: "want-specs", digests: [DIGEST] });
    await until("a spec each", () => {
      clock.advance(10);
      return [stream, others].every(({ work }) => work.some(({ kind }) => kind === "spec"));
    });
    await tasks.close();
  });

  it("should wait for an agent that does not read, and refuse one that asks for too much", async () => {
    const { desk, stream, node, tasks, sent } = setUp();
    desk.opened(node);
    await until("the list", () => sent("executions").length === 1);
    stream.isBehind = true;
    const digests = Array.from({ length: 200 }, (_, index) => new Uint8Array(32).fill(index));
    desk.receive(node, { kind: "want-specs", digests });
    // To ask again is no further demand.
    desk.receive(node, { kind: "want-specs", digests });
    expect(() => desk.receive(node, { kind: "want-specs", digests: [new Uint8Array(32).fill(200)] })).toThrow(
      /200 specs/,
    );
    stream.isBehind = false;
    desk.drained(node);
    await until("all specs", () => sent("spec").length === 200);
    await tasks.close();
  });
});

describe("WorkDesk, reports", () => {
  it("should save a report, and acknowledge it then", async () => {
    const { record, desk, node, tasks, report, sent, clock } = setUp();
    desk.opened(node);
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

  it("should let an agent forget what ended, when its whole report still has it", async () => {
    const { record, desk, node, tasks, report, sent } = setUp();
    desk.opened(node);
    record.forgotten = ["e2"];
    const ended = (id: string) => ({ id, state: ObservedState.ENDED, endReason: EndReason.EXITED, exitCode: 0 });
    report({ whole: true, observations: [ended("e1"), ended("e2")] });
    await until("word of it", () =>
      sent("executions").some((frame) => "references" in frame && frame.references.length),
    );
    expect(sent("executions").at(-1)).toMatchObject({ isWhole: false, references: [{ id: "e2", desired: "FORGET" }] });
    await tasks.close();
  });

  it("should say so again once the whole list was told, before which an agent takes no change", async () => {
    const { record, desk, stream, node, tasks, report, sent } = setUp();
    record.lists.set("n1", { nodeId: "n1", generation: 5n, references: [] });
    record.forgotten = ["e2"];
    stream.isBehind = true;
    desk.opened(node);
    await until("the list to be read", () => record.asked.length === 1);
    report({ whole: true, observations: [{ id: "e2", state: ObservedState.ENDED, endReason: EndReason.EXITED }] });
    await until("the report to be saved", () => record.reports.length === 1);
    stream.isBehind = false;
    desk.drained(node);
    await until("the list, and the word to forget", () => sent("executions").length === 2);
    expect(sent("executions")).toMatchObject([
      { isWhole: true, references: [] },
      { isWhole: false, generation: 5n, references: [{ id: "e2", desired: "FORGET" }] },
    ]);
    await tasks.close();
  });

  it("should ask for a report when a Beat names another digest", async () => {
    const { desk, node, tasks, report, sent } = setUp();
    desk.opened(node);
    report({ whole: true, digest: 5n });
    desk.onDigest(node, 5n);
    expect(sent("executions")).toEqual([]);
    desk.onDigest(node, 6n);
    expect(sent("executions")).toMatchObject([{ isReportWanted: true, isWhole: false, references: [] }]);
    await tasks.close();
  });

  it("should ask again with the next Beat when the agent did not read, and once alone when it did", async () => {
    const { desk, stream, node, tasks, report, sent } = setUp();
    desk.opened(node);
    report({ whole: true, digest: 5n });
    stream.isBehind = true;
    desk.onDigest(node, 6n);
    stream.isBehind = false;
    const asked = () => sent("executions").filter((frame) => "isReportWanted" in frame && frame.isReportWanted);
    expect(asked()).toEqual([]);
    desk.onDigest(node, 6n);
    desk.onDigest(node, 6n);
    expect(asked()).toHaveLength(1);
    await tasks.close();
  });

  it("should let an agent forget once it reads again", async () => {
    const { record, desk, stream, node, tasks, report, sent } = setUp();
    desk.opened(node);
    await until("the list", () => sent("executions").length === 1);
    record.forgotten = ["e2"];
    stream.isBehind = true;
    report({ whole: true, observations: [{ id: "e2", state: ObservedState.ENDED, endReason: EndReason.EXITED }] });
    await until("the end to be asked for", () => record.forgettings > 0);
    stream.isBehind = false;
    desk.drained(node);
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
    const { desk, node, tasks, report, record } = setUp();
    desk.opened(node);
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

  it("should ignore what an agent says that runs no work", async () => {
    const { node, tasks, report, record } = setUp();
    report({ observations: [{ id: "e1", state: ObservedState.RUNNING }] });
    expect(node.work).toBeNull();
    await tasks.close();
    expect(record.reports).toEqual([]);
  });
});
