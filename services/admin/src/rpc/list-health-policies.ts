import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type HealthPolicyService,
  ListHealthPoliciesResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { createPageTokens } from "@rollcall/runtime";
import { configuredPolicy, listHealthPolicies as listPolicies } from "@rollcall/store";
import type { AdminDeps } from "../deps.ts";
import { policyToProto, valuesToProto } from "../health-policy/convert.ts";

const DEFAULT_PAGE_SIZE = 100;
const LISTING = "ListHealthPolicies";

/** Answer a page of health policies. */
export function listHealthPolicies({
  store,
}: AdminDeps): MethodImpl<typeof HealthPolicyService.method.listHealthPolicies> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    // The MAC says that the cursor was made below.
    const after = pageTokens.open(LISTING, pageToken) as string | null;
    const { policies, next } = await listPolicies(store.db, { after, limit });
    return create(ListHealthPoliciesResponseSchema, {
      policies: policies.map(policyToProto),
      nextPageToken: next === null ? "" : pageTokens.seal(LISTING, next),
      configuration: valuesToProto(await configuredPolicy(store.db)),
    });
  };
}
