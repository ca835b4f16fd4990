import { describe, expect, it } from "@jest/globals";
import type { NodeReport } from "@rollcall/store";
import { ReportWatch } from "./report-watch.ts";

/** Create a watch. Returns it with its complaints and the epoch of each node. */
function begin() {
  const complaints: string[] = [];
  const epochs = new Map<string, number>();
  const watch = new ReportWatch({
    epochOf: (nodeId) => epochs.get(nodeId) ?? 1,
    fail: (message) => void complaints.push(message),
  });
  return { watch, complaints, epochs };
}

const report = (nodeId: string, executions = 0): NodeReport => ({
  ...{ nodeId, epoch: 1, number: 1, whole: true },
  executions: Array.from({ length: executions }, () => ({}) as NodeReport["executions"][number]),
});

describe("ReportWatch", () => {
  it("should accept a report that is saved again", () => {
    const { watch, complaints } = begin();
    watch.begin([report("a"), report("b")]);
    watch.failed([report("a"), report("b")]);
    watch.begin([report("b"), report("a")]);
    watch.begin([report("c")]);
    expect(complaints).toEqual([]);
  });

  it("should notice one that is left out of the next save", () => {
    const { watch, complaints } = begin();
    watch.begin([report("a"), report("b")]);
    watch.failed([report("a"), report("b")]);
    watch.begin([report("b")]);
    expect(complaints).toEqual(["a report of a was not saved, but forgotten"]);
  });

  it("should let a full save omit some reports, and an ended session all of its reports", () => {
    const { watch, complaints, epochs } = begin();
    watch.failed([report("a"), report("b")]);
    watch.begin([report("b", 2_000)]);
    epochs.set("a", 2);
    watch.begin([report("c")]);
    expect(complaints).toEqual([]);
  });
});
