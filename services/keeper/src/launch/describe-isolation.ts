import type { MessageInitShape } from "@bufbuild/protobuf";
import { WorkContainment, WorkIdentity, type WorkIsolationSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Isolation, NAMESPACES } from "./isolation.ts";
import type { WorkRules } from "./permissions.ts";

/** What decides how executions are kept apart. */
export interface IsolationFacts {
  readonly rules: Pick<WorkRules, "user" | "users" | "userIds">;
  readonly isolation: Isolation;
  readonly hasCgroups: boolean;
}

const MOST_PROBLEM = 512;

/** Describe for others what separates the executions of this machine. */
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

/** The weakest way in which executions are ended here. A user id that executions share identifies none of them. */
function containmentOf({ rules, isolation, hasCgroups }: IsolationFacts): WorkContainment {
  if (hasCgroups) return WorkContainment.CGROUP;
  if (isolation.hasNamespaces) return WorkContainment.NAMESPACE;
  const areAllOwn = rules.user === null && rules.userIds !== null && rules.users.length === 0;
  return areAllOwn ? WorkContainment.USER : WorkContainment.MISSING;
}
