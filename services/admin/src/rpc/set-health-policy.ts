import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  HealthPolicyService,
  type SetHealthPolicyRequest,
  type SetHealthPolicyResponse,
  SetHealthPolicyResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { formatPolicyScope, isSamePolicyEntry, policySetEvent } from "@rollcall/domain";
import { type AuditedCall, auditedCall } from "@rollcall/rpc";
import {
  AUDIT_OK,
  type Change,
  getHealthPolicy,
  lockHealthPolicies,
  lockNamedNode,
  saveHealthPolicy,
  type Tx,
} from "@rollcall/store";
import { answerOnce } from "../answer-once.ts";
import type { AdminDeps } from "../deps.ts";
import { policyToProto } from "../health-policy/convert.ts";
import { editPolicy, parseScope } from "../health-policy/policy-edit.ts";
import { checkPolicyEtag, planPolicyEdit } from "../health-policy/policy-plan.ts";
import { requestKey } from "../request-key.ts";

/** Make or change one health policy. */
export function setHealthPolicy({ store }: AdminDeps): MethodImpl<typeof HealthPolicyService.method.setHealthPolicy> {
  const method = HealthPolicyService.method.setHealthPolicy;
  return async (request, context) => {
    const { requestId } = request;
    const call = auditedCall(context, method);
    const key = requestKey(method, requestId, call.actor);
    const { result } = await store.change((tx) => answerOnce(tx, key, CODEC, () => set(tx, request, call)));
    return result;
  };
}

const CODEC = {
  encode: (answer: SetHealthPolicyResponse) => toBinary(SetHealthPolicyResponseSchema, answer),
  decode: (bytes: Uint8Array) => fromBinary(SetHealthPolicyResponseSchema, bytes),
};

async function set(
  tx: Tx,
  request: SetHealthPolicyRequest,
  call: AuditedCall,
): Promise<Change<SetHealthPolicyResponse>> {
  // The node's row before the policies, as whoever removes a node has it.
  const scope = await parseScope(request.scope, (ref) => lockNamedNode(tx, ref));
  await lockHealthPolicies(tx);
  const current = await getHealthPolicy(tx, scope);
  checkPolicyEtag(scope, current, request.etag);
  const before = current?.entry ?? null;
  const entry = editPolicy(scope, before, request);
  const changes = await planPolicyEdit(tx, { kind: "set", entry });
  const by = { actor: call.actor, message: request.reason };
  const isNew = current === null || !isSamePolicyEntry(current.entry, entry);
  const record = isNew ? await saveHealthPolicy(tx, entry, by) : current;
  const target = formatPolicyScope(scope);
  return {
    result: create(SetHealthPolicyResponseSchema, {
      policy: policyToProto(record),
      changedNodes: changes.length,
    }),
    events: isNew ? [policySetEvent(before, entry, by)] : [],
    audit: [{ ...call, target, reason: request.reason, outcome: AUDIT_OK }],
  };
}
