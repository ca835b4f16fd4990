import type { MessageInitShape } from "@bufbuild/protobuf";
import { WorkContainment, WorkIdentity, type WorkIsolationSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Isolation, NAMESPACES } from "./isolation.ts";
import type { WorkRules } from "./permissions.ts";

/** The facts that determine how executions are isolated. */
export interface IsolationFacts {
  readonly rules: Pick<WorkRules, "user" | "users" | "userIds">;
  readonly isolation: Isolation;
  readonly hasCgroups: boolean;
}

const MOST_PROBLEM = 512;

/** Describe what isolates the executions of this machine from each other. */
export function describeIsolation(facts: IsolationFacts): MessageInitShape<typeof WorkIsolationSchema> {
  const { rules, isolation } = facts;
  const isOwn = rules.user === null && rules.userIds !== null;
  return {
    identity: identityOf(facts),
    user: rules.user ?? "",
    namespaces: isOwn && isolation.hasNamespaces ? [...NAMESPACES] : [],
    containment: containmentOf(facts),
    problem: isolation.problem.slice(0, MOST_PROBLEM),
  };
}

function identityOf({ rules }: IsolationFacts): WorkIdentity {
  if (rules.user !== null) return WorkIdentity.SHARED;
  return rules.userIds === null ? WorkIdentity.AGENT : WorkIdentity.OWN;
}

/**
 * The weakest method that ends executions on this machine. A user id that executions share cannot identify the
 * processes of one execution.
 */
function containmentOf({ rules, isolation, hasCgroups }: IsolationFacts): WorkContainment {
  if (hasCgroups) return WorkContainment.CGROUP;
  if (isolation.hasNamespaces) return WorkContainment.NAMESPACE;
  const areAllOwn = rules.user === null && rules.userIds !== null && rules.users.length === 0;
  return areAllOwn ? WorkContainment.USER : WorkContainment.MISSING;
}
