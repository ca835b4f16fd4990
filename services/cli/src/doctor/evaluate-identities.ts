import type { DuplicatedNode } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { type Finding, finding, fine } from "./finding.ts";

/** Check that every node has only one agent. */
export function evaluateIdentities(duplicated: readonly DuplicatedNode[]): readonly Finding[] {
  if (duplicated.length === 0) return [fine("identities", "nodes", "every node has one agent")];
  return duplicated.map(({ nodeId, addresses }) =>
    finding(
      "problem",
      { check: "identities", subject: nodeId },
      `two agents use its identity: ${addresses.join(" and ")}; it takes no new work`,
      "stop the agent that runs on a copied state directory, remove that copy, and start the agent again",
    ),
  );
}
