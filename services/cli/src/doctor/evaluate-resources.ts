import type { UnknownResources } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { type Finding, finding, fine } from "./finding.ts";

/** Check that the agent of every node can determine its resources. */
export function evaluateResources(
  unknown: readonly Pick<UnknownResources, "nodeId" | "reasons">[],
): readonly Finding[] {
  if (unknown.length === 0) return [fine("resources", "nodes", "the agent of every node can determine its resources")];
  return unknown.map(({ nodeId, reasons }) => {
    const onlyGpus = reasons.every((reason) => reason === "GPUS_UNKNOWN");
    const effect = onlyGpus ? "new executions get no GPU there" : "the node gets no new executions";
    const found = `its agent cannot determine all of its resources (${reasons.join(", ")}): ${effect}`;
    const advice = `see \`rollcall node why ${nodeId}\`, and repair what the log of its agent names`;
    return finding("warning", { check: "resources", subject: nodeId }, found, advice);
  });
}
