import {
  changedPolicies,
  collectPolicies,
  describePolicyScope,
  formatPolicyScope,
  type HealthPolicies,
  MAX_GROUP_POLICIES,
  MAX_NODE_POLICIES,
  newContradictions,
  type PolicyChange,
  type PolicyContradiction,
  type PolicyEntry,
  PolicyResolver,
  type PolicyScope,
  scopeOf,
  withoutPolicy,
  withPolicy,
} from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import {
  configuredPolicy,
  type Db,
  type HealthPolicyRecord,
  policySubject,
  policySubjects,
  readHealthPolicies,
} from "@rollcall/store";

/** What is to become of one policy: another one, or nothing. */
export type PolicyEdit =
  | { readonly kind: "set"; readonly entry: PolicyEntry }
  | { readonly kind: "delete"; readonly scope: PolicyScope };

/** Most contradictions that an answer names; there may be one for every node. */
const MOST_NAMED = 3;

/**
 * Find the nodes that an edit gives another policy, in order of id.
 * Throws HEALTH_POLICY_CONTRADICTION or TOO_MANY_HEALTH_POLICIES.
 */
export async function planPolicyEdit(db: Db, edit: PolicyEdit): Promise<readonly PolicyChange[]> {
  const configured = await configuredPolicy(db);
  const { entries } = await readHealthPolicies(db);
  const now = collectPolicies(entries);
  const then = edit.kind === "set" ? withPolicy(now, edit.entry) : withoutPolicy(now, edit.scope);
  checkLimits(then);
  const before = new PolicyResolver(configured, now);
  const after = new PolicyResolver(configured, then);
  const changes: PolicyChange[] = [];
  for await (const nodes of subjectsOf(db, scopeOfEdit(edit))) {
    for (const change of changedPolicies(before, after, nodes)) changes.push(change);
  }
  const contradictions = newContradictions(before, after, changes);
  if (contradictions.length > 0) throw contradictory(edit, contradictions);
  return changes;
}

/** Refuse an etag that is not that of the policy as it is. Throws ETAG_MISMATCH. */
export function checkPolicyEtag(scope: PolicyScope, current: HealthPolicyRecord | null, etag: string): void {
  if (etag === "" || etag === current?.etag) return;
  const message = `the health policy of ${describePolicyScope(scope)} has changed since this etag was read; read it again and decide anew`;
  const metadata = { scope: formatPolicyScope(scope), etag: current?.etag ?? "" };
  throw refuse("ETAG_MISMATCH", message, { metadata });
}

/** The refusal of a scope that has no policy. */
export function policyNotFound(scope: PolicyScope): Error {
  const message = `no health policy is set for ${describePolicyScope(scope)}; \`rollcall policy list\` shows those that there are`;
  return refuse("HEALTH_POLICY_NOT_FOUND", message, {
    metadata: { scope: formatPolicyScope(scope) },
  });
}

function scopeOfEdit(edit: PolicyEdit): PolicyScope {
  return edit.kind === "set" ? scopeOf(edit.entry) : edit.scope;
}

/** The nodes that an edit may concern. */
async function* subjectsOf(db: Db, scope: PolicyScope) {
  if (scope.kind !== "node") {
    yield* policySubjects(db);
    return;
  }
  const node = await policySubject(db, scope.nodeId);
  if (node !== null) yield [node];
}

function checkLimits({ groups, nodes }: HealthPolicies): void {
  if (groups.size > MAX_GROUP_POLICIES) throw tooMany("groups", MAX_GROUP_POLICIES);
  if (nodes.size > MAX_NODE_POLICIES) {
    throw tooMany("nodes with a policy of their own", MAX_NODE_POLICIES);
  }
}

function tooMany(what: string, limit: number): Error {
  const message = `there are ${limit} ${what} already, which is the most; delete one, or let a group stand for several`;
  return refuse("TOO_MANY_HEALTH_POLICIES", message, { metadata: { limit: `${limit}` } });
}

function contradictory(edit: PolicyEdit, found: readonly PolicyContradiction[]): Error {
  const named = found.slice(0, MOST_NAMED).map(({ combination, problems }) => `${combination}: ${problems.join("; ")}`);
  const more = found.length > MOST_NAMED ? ` (and ${found.length - MOST_NAMED} more)` : "";
  const scope = scopeOfEdit(edit);
  const verb = edit.kind === "set" ? "set" : "deleted";
  const message = `the health policy of ${describePolicyScope(scope)} cannot be ${verb}: ${named.join("; ")}${more}`;
  return refuse("HEALTH_POLICY_CONTRADICTION", message, {
    metadata: {
      scope: formatPolicyScope(scope),
      combination: found[0]?.combination ?? "",
      combinations: `${found.length}`,
    },
    violations: found.slice(0, MOST_NAMED).map(({ combination, problems }) => ({
      field: edit.kind === "set" ? "values" : "scope",
      description: `${combination}: ${problems.join("; ")}`,
    })),
  });
}
