import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetHealthPolicyResponseSchema,
  type HealthPolicyService,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { collectPolicies, PolicyResolver, type PolicyScope, type ResolvedPolicy } from "@rollcall/domain";
import {
  configuredPolicy,
  type Db,
  getHealthPolicy as getPolicy,
  policySubject,
  readHealthPolicies,
} from "@rollcall/store";
import type { AdminDeps } from "../deps.ts";
import { effectiveToProto, policyToProto } from "../health-policy/convert.ts";
import { nodeFinder, parseScope } from "../health-policy/policy-edit.ts";
import { policyNotFound } from "../health-policy/policy-plan.ts";

/** Answer one health policy, what results for its scope, or both. */
export function getHealthPolicy({
  store: { db },
}: AdminDeps): MethodImpl<typeof HealthPolicyService.method.getHealthPolicy> {
  return async (request) => {
    const scope = await parseScope(request.scope, nodeFinder(db));
    const record = await getPolicy(db, scope);
    const effective = request.withEffective ? await resolve(db, scope) : null;
    if (record === null && effective === null) throw policyNotFound(scope);
    return create(GetHealthPolicyResponseSchema, {
      ...(record === null ? {} : { policy: policyToProto(record) }),
      ...(effective === null ? {} : { effective: effectiveToProto(effective) }),
    });
  };
}

/** What results for a scope; null for a group or node that is not there. */
async function resolve(db: Db, scope: PolicyScope): Promise<ResolvedPolicy | null> {
  const configured = await configuredPolicy(db);
  const { entries } = await readHealthPolicies(db);
  const resolver = new PolicyResolver(configured, collectPolicies(entries));
  switch (scope.kind) {
    case "default":
      return resolver.combination(null);
    case "group": {
      const group = resolver.policies.groups.get(scope.name);
      return group === undefined ? null : resolver.combination(group);
    }
    case "node": {
      const node = await policySubject(db, scope.nodeId);
      return node === null ? null : resolver.resolve(node);
    }
  }
}
