import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ExecutionReportSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { EndReason, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { silentLogger, startTasks } from "@rollcall/process";
import { createRequestValidator } from "@rollcall/rpc";
import type { NodeReport, NodeWork, WorkReference } from "@rollcall/store";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { until } from "@rollcall/testkit/time";
import { BareStream, bareReplica, HELLO, opening } from "../testing/bare-replica.ts";
import { WorkDispatcher } from "./work-dispatcher.ts";
import type { ChangedWork, WorkStore } from "./work-store.ts";

const DIGEST = new Uint8Array(32).fill(7);
const RUN: WorkReference = {
  ...{ id: "e1", desired: "RUN", specDigest: Buffer.from(DIGEST), index: 0, ports: {}, gpuUuids: [], reported: false },
};

/** A store with one node, whose list of work a test changes. */
class NodeStore implements WorkStore {
  readonly reports: NodeReport[] = [];
  #changed: ChangedWork[] = [];
  #list: NodeWork = { nodeId: "n1", generation: 1n, references: [RUN] };

  /** Change the node's list. */
  change(references: readonly WorkReference[]): void {
    const generation = this.#list.generation + 1n;
    this.#list = { nodeId: "n1", generation, references };
    this.#changed.push({ nodeId: "n1", generation });
  }

  readonly logId = () => "log-1";
  readonly readNodes = async () => [this.#list];
  readonly changedNodes = async () => this.#changed.splice(0);
  readonly readSpecs = async () => [{ digest: Buffer.from(DIGEST), spec: Buffer.from("spec") }];
  readonly forgettable = async (_: string, ids: readonly string[]) => ids;

  readonly saveReports = async (reports: readonly NodeReport[]) => {
    this.reports.push(...reports);
    return { cutNodeIds: [] };
  };
}

describe("WorkDispatcher", () => {
  it("should send and save everything although a call of the store failed once", async () => {
    const calls = await failOnceAtEachCall(
      async (ports) => {
        const store = new NodeStore();
        const record = ports.wrap<WorkStore>("record", store, { except: ["logId"] });
        const { replica, clock } = bareReplica();
        const validator = createRequestValidator([ExecutionReportSchema]);
        const loops = { clock, retry: { baseMs: 1, maxMs: 1 } };
        const dispatcher = new WorkDispatcher({ record, replica, validator, loops });
        const stream = new BareStream();
        const node = replica.take(stream, opening(1), HELLO);
        const tasks = startTasks(dispatcher.tasks, { log: silentLogger, clock });
        const sent = (what: string, isIt: (frame: (typeof stream.work)[number]) => boolean) =>
          until(what, () => {
            clock.advance(10);
            return stream.work.some(isIt);
          });
        const orders = (desired: string) => (frame: (typeof stream.work)[number]) =>
          frame.kind === "executions" && frame.references.some((it) => it.desired === desired);

        dispatcher.opened(node);
        await sent("the list", orders("RUN"));
        dispatcher.receive(node, { kind: "want-specs", digests: [DIGEST] });
        await sent("the spec", ({ kind }) => kind === "spec");
        store.change([{ ...RUN, desired: "STOP" }]);
        dispatcher.observe();
        await sent("the change", orders("STOP"));
        const ended = { id: "e1", state: ObservedState.ENDED, endReason: EndReason.STOPPED };
        const report = create(ExecutionReportSchema, { number: 1n, whole: true, observations: [ended] });
        dispatcher.receive(node, { kind: "report", report });
        await sent("the acknowledgement", ({ kind }) => kind === "report-ack");
        await sent("the order to forget", orders("FORGET"));
        expect(store.reports).toMatchObject([{ nodeId: "n1", executions: [{ id: "e1", observed: "ENDED" }] }]);
        await tasks.close();
      },
      { kinds: ["before"] },
    );
    expect(new Set(calls)).toEqual(
      new Set(["changedNodes", "readNodes", "readSpecs", "saveReports", "forgettable"].map((name) => `record.${name}`)),
    );
  });
});
