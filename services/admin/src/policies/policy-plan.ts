import {
  changedPolicies,
  collectPolicies,
  contradictionRefusal,
  describePolicyScope,
  formatPolicyScope,
  newContradictions,
  type PolicyChange,
  type PolicyEdit,
  PolicyResolver,
  type PolicyScope,
  policiesAfter,
  policyEtagRefusal,
  scopeOfEdit,
  suggestName,
  tooManyPolicies,
} from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import {
  configuredPolicy,
  type Db,
  type HealthPolicyRow,
  policySubject,
  policySubjects,
  readHealthPolicies,
} from "@rollcall/store";

/**
 * Find the nodes whose policy an edit changes, in order of id. Throws HEALTH_POLICY_CONTRADICTION or
 * TOO_MANY_HEALTH_POLICIES.
 */
export async function planPolicyEdit(db: Db, edit: PolicyEdit): Promise<readonly PolicyChange[]> {
  const configured = await configuredPolicy(db);
  const { entries } = await readHealthPolicies(db);
  const now = collectPolicies(entries);
  const then = policiesAfter(now, edit);
  const tooMany = tooManyPolicies(then);
  if (tooMany !== null) throw refuse(tooMany.reason, tooMany.message, { metadata: tooMany.metadata });
  const before = new PolicyResolver(configured, now);
  const after = new PolicyResolver(configured, then);
  const changes: PolicyChange[] = [];
  for await (const nodes of subjectsOf(db, scopeOfEdit(edit))) {
    for (const change of changedPolicies(before, after, nodes)) changes.push(change);
  }
  const contradictory = contradictionRefusal(edit, newContradictions(before, after, changes));
  if (contradictory === null) return changes;
  const { reason, message, metadata } = contradictory.refusal;
  const field = edit.kind === "set" ? "values" : "scope";
  const violations = contradictory.named.map((description) => ({ field, description }));
  throw refuse(reason, message, { metadata, violations });
}

/** Check that an etag matches the current policy. Throws ETAG_MISMATCH. */
export function checkPolicyEtag(scope: PolicyScope, current: HealthPolicyRow | null, etag: string): void {
  const refusal = policyEtagRefusal(scope, current?.etag ?? null, etag);
  if (refusal !== null) throw refusalError(refusal, formatPolicyScope(scope));
}

/** The error for a scope without a policy, with the most likely intended group. */
export async function policyNotFound(db: Db, scope: PolicyScope): Promise<Error> {
  const message = `no health policy is set for ${describePolicyScope(scope)}`;
  const subject = formatPolicyScope(scope);
  const missing = { reason: "HEALTH_POLICY_NOT_FOUND", message, metadata: { scope: subject } } as const;
  if (scope.kind !== "group") return refusalError(missing, subject);
  const groups = [...collectPolicies((await readHealthPolicies(db)).entries).groups.keys()];
  return refusalError(suggestName(missing, scope.name, groups), subject);
}

/** The nodes that an edit can affect. */
async function* subjectsOf(db: Db, scope: PolicyScope) {
  if (scope.kind !== "node") {
    yield* policySubjects(db);
    return;
  }
  const node = await policySubject(db, scope.nodeId);
  if (node !== null) yield [node];
}
