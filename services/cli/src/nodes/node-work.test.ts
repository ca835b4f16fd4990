import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import {
  AllocatedResourcesSchema,
  NodeInfoSchema,
  UnknownFactSchema,
  WorkCapacitySchema,
  WorkContainment,
  WorkIdentity,
  type WorkIsolationSchema,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { GetClusterSummaryResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { toPlain } from "../output/format.ts";
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
    ...{ executors: ["process"], millicores: 16_000, memoryBytes: 64n * GIB, diskBytes: 0n, limits: ["cpu", "memory"] },
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
      "each execution has its own user id, and sees neither other processes nor their /tmp",
      "jobs that name a user (web and db): one trust domain for each user",
      "all processes of an execution end with it (by its cgroup)",
    ]);
    const shared = { identity: WorkIdentity.SHARED, user: "web", containment: WorkContainment.NAMESPACE };
    expect(texts(shared)[0]).toBe("one trust domain: executions run as web, and can read each other's data");
    const agents = { identity: WorkIdentity.AGENT, containment: WorkContainment.MISSING, problem: "no setpriv" };
    expect(texts(agents)).toEqual([
      expect.stringMatching(/^one trust domain: .* and can read each other's data and the node's key$/),
      expect.stringMatching(/^containment is missing/),
      "not in force: no setpriv",
    ]);
  });

  it("should be empty for an agent that does not report it, and for unknown values", () => {
    expect(isolationTexts(create(WorkCapacitySchema, { executors: ["process"] }))).toEqual([]);
    expect(texts({ identity: 99 as WorkIdentity, containment: 99 as WorkContainment })).toEqual([]);
  });
});

describe("allocated and free resources of a node", () => {
  it.each([
    ["a node that takes work", working(), /^n1 .* 14\.5\/16 +60\.0 GiB\/64\.0 GiB +1\/2 +3$/m],
    ["one whose hardware shrank", working(20_000), /^n1 .* 0\/16 +/m],
    ["one that takes none", computeNode("n1"), /^n1 .* - +- +- +-$/m],
  ])("should be in a list, of %s", (_, node, line) => {
    const table = new TablePrinter(listColumns(["work"]), { wide: true });
    expect(table.print([{ node, health: undefined }])).toMatch(line);
  });

  it("should show GPUs as unknown, not as none", () => {
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

  it("should show that amounts are unknown, or the last known ones", () => {
    const node = working();
    const { info } = node;
    if (info === undefined) throw new Error("the sample has no information");
    info.unknownFacts = ["cpu.usable_millis", "memory_bytes", "disk_bytes"].map((fact) =>
      create(UnknownFactSchema, { fact, reason: "no answer" }),
    );
    info.memoryBytes = undefined;
    const table = new TablePrinter(listColumns(["capacity", "work", "hardware"]), { wide: true });
    expect(table.print([{ node, health: undefined }])).toMatch(
      / unknown +2 +unknown +unknown +1\/2 .* 500 GiB \(last known\)/m,
    );
    const look = { paint: paintNothing, columns: 0, sparkWidth: 0 };
    const panel = statusPanel({ node, health: undefined, nowMs: NOW_MS }, look);
    expect(panel).toContain("Memory      unknown, 1 NUMA node\nDisk        500 GiB (last known)\n");
    expect(panel).toContain("Unknown     memory_bytes, no value known, so no new work is placed here: no answer\n");
    expect(panel).toContain("            memory unknown, 4.0 GiB allocated\n");
  });

  it("should show absent amounts as unknown, also in JSON", () => {
    const node = working();
    const { info } = node;
    if (info?.work === undefined) throw new Error("the sample takes no work");
    info.memoryBytes = info.work.memoryBytes = info.work.millicores = undefined;
    const table = new TablePrinter(listColumns(["capacity", "work"]), { wide: true });
    expect(table.print([{ node, health: undefined }])).toMatch(/ unknown +2 +unknown +unknown +1\/2 /m);
    const look = { paint: paintNothing, columns: 0, sparkWidth: 0 };
    expect(statusPanel({ node, health: undefined, nowMs: NOW_MS }, look)).toContain(
      "            cores unknown, 1.5 allocated\n            memory unknown, 4.0 GiB allocated\n",
    );
    const { memoryBytes, diskBytes, work } = toPlain(NodeInfoSchema, info) as Record<string, Record<string, unknown>>;
    expect([memoryBytes, diskBytes, work?.millicores, work?.memoryBytes, work?.diskBytes]).toEqual([
      ...[undefined, String(500n * GIB), undefined, undefined, "0"],
    ]);
  });

  it("should be in its description, if it takes work", () => {
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
