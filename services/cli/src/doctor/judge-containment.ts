import { type Finding, finding, fine } from "./finding.ts";

/** Check that every node can end all processes of its executions. */
export function judgeContainment(uncontained: readonly string[]): readonly Finding[] {
  if (uncontained.length === 0) return [fine("containment", "nodes", "every node can end all processes that it runs")];
  return uncontained.map((nodeId) =>
    finding(
      "warning",
      { check: "containment", subject: nodeId },
      "processes that leave their session and environment keep running after the end of their execution, and what " +
        "they use counts as free",
      "let its keeper make cgroups, or run the keeper as root: see docs/how-to/run-work.md",
    ),
  );
}
