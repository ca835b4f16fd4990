import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import {
  AllocatedResourcesSchema,
  UnknownFactSchema,
  WorkCapacitySchema,
  WorkContainment,
  WorkIdentity,
  type WorkIsolationSchema,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { GetClusterSummaryResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { paintNothing } from "../output/style.ts";
import { TablePrinter } from "../output/table.ts";
import { computeNode, NOW_MS } from "../testing/sample-nodes.ts";
import { isolationTexts, statusPanel } from "./describe.ts";
import { listColumns } from "./list-columns.ts";
import { formatSummary } from "./summary.ts";

const GIB = 1024n ** 3n;

function working(millicores = 1_500) {
  const node = computeNode("n1");
  const work = create(WorkCapacitySchema, {
    ...{ executors: ["process"], millicores: 16_000, memoryBytes: 64n * GIB, limits: ["cpu", "memory"] },
  });
  if (node.info !== undefined) node.info.work = work;
  node.allocated = create(AllocatedResourcesSchema, {
    ...{ millicores, memoryBytes: 4n * GIB, gpuUuids: ["GPU-1"], executions: 3 },
  });
  return node;
}

describe("isolationTexts()", () => {
  const texts = (isolation: MessageInitShape<typeof WorkIsolationSchema>, more = {}) =>
    isolationTexts(create(WorkCapacitySchema, { executors: ["process"], isolation, ...more }));

  it("should say which executions share a trust domain, and how their processes end", () => {
    const own = { identity: WorkIdentity.OWN, namespaces: ["pid"], containment: WorkContainment.CGROUP };
    expect(texts(own, { users: ["web", "db"] })).toEqual([
      "each execution has a user id of its own, and sees neither other processes nor their /tmp",
      "jobs that name a user (web and db): one trust domain for each user",
      "all processes of an execution end with it: by its cgroup",
    ]);
    const shared = { identity: WorkIdentity.SHARED, user: "web", containment: WorkContainment.NAMESPACE };
    expect(texts(shared)[0]).toBe("one trust domain: executions run as web, and can read each other");
    const agents = { identity: WorkIdentity.AGENT, containment: WorkContainment.MISSING, problem: "no setpriv" };
    expect(texts(agents)).toEqual([
      expect.stringMatching(/^one trust domain: .* and can read each other and the node's key$/),
      expect.stringMatching(/^containment is missing/),
      "not in force: no setpriv",
    ]);
  });

  it("should say nothing of an agent that does not report it, and of values that are not known", () => {
    expect(isolationTexts(create(WorkCapacitySchema, { executors: ["process"] }))).toEqual([]);
    expect(texts({ identity: 99 as WorkIdentity, containment: 99 as WorkContainment })).toEqual([]);
  });
});

describe("what is allocated and free of a node", () => {
  it.each([
    ["a node that takes work", working(), /^n1 .* 14\.5\/16 +60\.0 GiB\/64\.0 GiB +1\/2 +3$/m],
    ["one whose hardware shrank", working(20_000), /^n1 .* 0\/16 +/m],
    ["one that takes none", computeNode("n1"), /^n1 .* - +- +- +-$/m],
  ])("should be in a list, of %s", (_, node, line) => {
    const table = new TablePrinter(listColumns(["work"]), { wide: true });
    expect(table.print([{ node, health: undefined }])).toMatch(line);
  });

  it("should say of GPUs that they are unknown, not that there are none", () => {
    const line = (knows: boolean) => {
      const node = working();
      const { info } = node;
      if (info === undefined) return "";
      info.unknownFacts = [create(UnknownFactSchema, { fact: "gpus", reason: "nvidia-smi gave no answer" })];
      if (!knows) info.gpus = [];
      const table = new TablePrinter(listColumns(["capacity", "work"]), { wide: true });
      return table.print([{ node, health: undefined }]);
    };
    expect(line(true)).toMatch(/ 2 \(last known\) .* unknown +3$/m);
    expect(line(false)).toMatch(/ unknown .* unknown +3$/m);
  });

  it("should be in its description, if it takes any", () => {
    const look = { paint: paintNothing, columns: 0, sparkWidth: 0 };
    const panel = (node: ReturnType<typeof working>) => statusPanel({ node, health: undefined, nowMs: NOW_MS }, look);
    expect(panel(working())).toContain(
      "Work        process; 3 executions; limits on cpu and memory\n" +
        "            cores 14.5 free of 16, 1.5 allocated\n" +
        "            memory 60.0 GiB free of 64.0 GiB, 4.0 GiB allocated\n" +
        "            GPUs 1 free of 2, 1 allocated\n",
    );
    expect(panel(computeNode("n1"))).not.toContain("Work ");
  });

  it("should be in the summary, if any node takes work", () => {
    const summary = create(GetClusterSummaryResponseSchema, {
      offered: { millicores: 16_000n, memoryBytes: 64n * GIB, gpus: 2n },
      allocated: { millicores: 1_500n, memoryBytes: 4n * GIB, gpus: 1n, executions: 3n },
    });
    expect(formatSummary(summary, paintNothing)).toContain(
      "Executions:    3\nWork cores:    1.5 allocated / 14.5 free\nWork memory:   4.0 GiB allocated / 60.0 GiB free\n",
    );
    expect(formatSummary(create(GetClusterSummaryResponseSchema, {}), paintNothing)).not.toContain("Work");
  });
});
