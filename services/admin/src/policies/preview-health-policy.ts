import { create, toJsonString } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type HealthPolicyService,
  PreviewedNodeSchema,
  type PreviewHealthPolicyRequest,
  PreviewHealthPolicyRequestSchema,
  PreviewHealthPolicyResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import type { PolicyEdit } from "@rollcall/domain";
import { refuseFields } from "@rollcall/errors";
import { createPageTokens } from "@rollcall/rpc";
import { type Db, getHealthPolicy } from "@rollcall/store";
import { readPage } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";
import { changeToProto } from "./convert.ts";
import { editPolicy, nodeFinder, parseScope } from "./policy-edit.ts";
import { checkPolicyEtag, planPolicyEdit, policyNotFound } from "./policy-plan.ts";

const DEFAULT_PAGE_SIZE = 100;

/**
 * Preview the effect of a policy change. Each page evaluates all nodes again, so that its count is
 * current.
 */
export function previewHealthPolicy({
  store,
}: AdminServices): MethodImpl<typeof HealthPolicyService.method.previewHealthPolicy> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async (request, context) => {
    const listing = listingOf(request);
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const after = pageTokens.open(listing, request.pageToken) as string | null;
    const limit = request.pageSize === 0 ? DEFAULT_PAGE_SIZE : request.pageSize;
    const changes = await planPolicyEdit(store.db, await parseChange(store.db, request));
    const left = changes.filter(({ nodeId }) => after === null || nodeId > after);
    const page = await readPage(context, {
      ...{ rows: [left], limit, item: PreviewedNodeSchema, toMessage: changeToProto },
    });
    return page.answer(PreviewHealthPolicyResponseSchema, "nodes", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(listing, page.next.nodeId),
      changedNodes: changes.length,
    });
  };
}

async function parseChange(db: Db, { change }: PreviewHealthPolicyRequest): Promise<PolicyEdit> {
  if (change.case === undefined) {
    const description = "exactly one of set and delete is required";
    throw refuseFields("INVALID_REQUEST", [{ field: "change", description }]);
  }
  const scope = await parseScope(change.value.scope, nodeFinder(db));
  const current = await getHealthPolicy(db, scope);
  checkPolicyEtag(scope, current, change.value.etag);
  if (change.case === "set") {
    return { kind: "set", entry: editPolicy(scope, current?.entry ?? null, change.value) };
  }
  if (current === null) throw await policyNotFound(db, scope);
  return { kind: "delete", scope };
}

/** Identifies a preview in page tokens, because all its pages must be about one change. */
function listingOf(request: PreviewHealthPolicyRequest): string {
  const { change } = request;
  const asked = create(PreviewHealthPolicyRequestSchema, { change });
  return `PreviewHealthPolicy ${toJsonString(PreviewHealthPolicyRequestSchema, asked)}`;
}
