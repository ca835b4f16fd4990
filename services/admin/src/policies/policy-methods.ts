import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, MethodImpl } from "@connectrpc/connect";
import {
  GetHealthPolicyResponseSchema,
  HealthPolicySchema,
  HealthPolicyService,
  ListHealthPoliciesResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import {
  collectPolicies,
  formatPolicyScope,
  PolicyResolver,
  type PolicyScope,
  type ResolvedPolicy,
  scopeOf,
} from "@rollcall/domain";
import { createPageTokens, definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import {
  configuredPolicy,
  type Db,
  getHealthPolicy as getPolicy,
  policySubject,
  readHealthPolicies,
  readHealthPolicyList,
} from "@rollcall/store";
import { readPage } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";
import { deleteHealthPolicy, setHealthPolicy } from "./change-health-policy.ts";
import { effectiveToProto, policyToProto, valuesToProto } from "./convert.ts";
import { nodeFinder, parseScope } from "./policy-edit.ts";
import { policyNotFound } from "./policy-plan.ts";
import { previewHealthPolicy } from "./preview-health-policy.ts";

/**
 * The method policy of changes. The deadline is long, because each changed health policy is evaluated for
 * every node of the fleet.
 */
const CHANGE: MethodPolicy = { caller: "operator", deadlineMs: 30_000, idempotent: false };
const READING: MethodPolicy = { caller: "viewer", deadlineMs: 10_000, idempotent: true };

/**
 * Who can call each method of health policies, its deadline, and whether clients can retry it automatically.
 */
export const HEALTH_POLICY_POLICIES: PolicyTable = definePolicies(HealthPolicyService, {
  setHealthPolicy: CHANGE,
  getHealthPolicy: READING,
  listHealthPolicies: READING,
  deleteHealthPolicy: CHANGE,
  previewHealthPolicy: { ...READING, deadlineMs: 30_000 },
});

/** Register the methods of health policies. */
export function routeHealthPolicies(router: ConnectRouter, services: AdminServices): void {
  router.service(HealthPolicyService, {
    setHealthPolicy: setHealthPolicy(services),
    getHealthPolicy: getHealthPolicy(services),
    listHealthPolicies: listHealthPolicies(services),
    deleteHealthPolicy: deleteHealthPolicy(services),
    previewHealthPolicy: previewHealthPolicy(services),
  });
}

/** Return one health policy, the resulting values for its scope, or both. */
function getHealthPolicy({
  store: { db },
}: AdminServices): MethodImpl<typeof HealthPolicyService.method.getHealthPolicy> {
  return async (request) => {
    const scope = await parseScope(request.scope, nodeFinder(db));
    const record = await getPolicy(db, scope);
    const effective = request.withEffective ? await resolve(db, scope) : null;
    if (record === null && effective === null) throw await policyNotFound(db, scope);
    return create(GetHealthPolicyResponseSchema, {
      ...(record === null ? {} : { policy: policyToProto(record) }),
      ...(effective === null ? {} : { effective: effectiveToProto(effective) }),
    });
  };
}

/** The resulting values for a scope; null for a group or node that does not exist. */
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

const DEFAULT_PAGE_SIZE = 100;
const LISTING = "ListHealthPolicies";

/** Return a page of health policies. */
function listHealthPolicies({
  store,
}: AdminServices): MethodImpl<typeof HealthPolicyService.method.listHealthPolicies> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }, context) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const after = pageTokens.open(LISTING, pageToken) as string | null;
    const page = await readPage(context, {
      rows: readHealthPolicyList(store.db, after ?? ""),
      limit,
      item: HealthPolicySchema,
      toMessage: policyToProto,
    });
    const last = page.next === null ? null : formatPolicyScope(scopeOf(page.next.entry));
    return page.answer(ListHealthPoliciesResponseSchema, "policies", {
      nextPageToken: last === null ? "" : pageTokens.seal(LISTING, last),
      configuration: valuesToProto(await configuredPolicy(store.db)),
    });
  };
}
