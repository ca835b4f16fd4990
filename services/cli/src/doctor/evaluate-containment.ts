import { type Finding, finding, fine } from "./finding.ts";

/** Check that every node can stop all processes of its executions. */
export function evaluateContainment(uncontained: readonly string[]): readonly Finding[] {
  if (uncontained.length === 0)
    return [fine("containment", "nodes", "every node can stop all processes of its executions")];
  return uncontained.map((nodeId) =>
    finding(
      "warning",
      { check: "containment", subject: nodeId },
      "processes that leave their session and environment keep running after their execution has ended, and the " +
        "resources they use count as free",
      "allow its keeper to create cgroups, or run the keeper as root: see docs/how-to/run-work.md",
    ),
  );
}
