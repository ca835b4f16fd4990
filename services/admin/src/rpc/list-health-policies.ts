import type { MethodImpl } from "@connectrpc/connect";
import {
  HealthPolicySchema,
  type HealthPolicyService,
  ListHealthPoliciesResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { formatPolicyScope, scopeOf } from "@rollcall/domain";
import { createPageTokens } from "@rollcall/rpc";
import { configuredPolicy, readHealthPolicyList } from "@rollcall/store";
import { readPage } from "@rollcall/wire";
import type { AdminDeps } from "../deps.ts";
import { policyToProto, valuesToProto } from "../health-policy/convert.ts";

const DEFAULT_PAGE_SIZE = 100;
const LISTING = "ListHealthPolicies";

/** Answer a page of health policies. */
export function listHealthPolicies({
  store,
}: AdminDeps): MethodImpl<typeof HealthPolicyService.method.listHealthPolicies> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }, context) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    // The MAC says that the cursor was made below.
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
