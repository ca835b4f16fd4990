import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type DeleteHealthPolicyRequest,
  type DeleteHealthPolicyResponse,
  DeleteHealthPolicyResponseSchema,
  HealthPolicyService,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { formatPolicyScope, policyDeletedEvent } from "@rollcall/domain";
import { type AuditedCall, auditedCall } from "@rollcall/rpc";
import {
  AUDIT_OK,
  type Change,
  deleteHealthPolicy as deletePolicy,
  getHealthPolicy,
  lockHealthPolicies,
  lockNamedNode,
  type Tx,
} from "@rollcall/store";
import { answerOnce } from "../answer-once.ts";
import type { AdminDeps } from "../deps.ts";
import { policyToProto } from "../health-policy/convert.ts";
import { parseScope } from "../health-policy/policy-edit.ts";
import { checkPolicyEtag, planPolicyEdit, policyNotFound } from "../health-policy/policy-plan.ts";
import { requestKey } from "../request-key.ts";

/** Remove one health policy. */
export function deleteHealthPolicy({
  store,
}: AdminDeps): MethodImpl<typeof HealthPolicyService.method.deleteHealthPolicy> {
  const method = HealthPolicyService.method.deleteHealthPolicy;
  return async (request, context) => {
    const { requestId } = request;
    const call = auditedCall(context, method);
    const key = requestKey(method, requestId, call.actor);
    const { result } = await store.change((tx) => answerOnce(tx, key, CODEC, () => remove(tx, request, call)));
    return result;
  };
}

const CODEC = {
  encode: (answer: DeleteHealthPolicyResponse) => toBinary(DeleteHealthPolicyResponseSchema, answer),
  decode: (bytes: Uint8Array) => fromBinary(DeleteHealthPolicyResponseSchema, bytes),
};

async function remove(
  tx: Tx,
  request: DeleteHealthPolicyRequest,
  call: AuditedCall,
): Promise<Change<DeleteHealthPolicyResponse>> {
  const scope = await parseScope(request.scope, (ref) => lockNamedNode(tx, ref));
  await lockHealthPolicies(tx);
  const current = await getHealthPolicy(tx, scope);
  if (current === null) throw policyNotFound(scope);
  checkPolicyEtag(scope, current, request.etag);
  const changes = await planPolicyEdit(tx, { kind: "delete", scope });
  await deletePolicy(tx, scope);
  const { actor } = call;
  return {
    result: create(DeleteHealthPolicyResponseSchema, {
      policy: policyToProto(current),
      changedNodes: changes.length,
    }),
    events: [policyDeletedEvent(current.entry, { actor, message: request.reason })],
    audit: [{ ...call, target: formatPolicyScope(scope), reason: request.reason, outcome: AUDIT_OK }],
  };
}
