import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type DeleteHealthPolicyRequest,
  type DeleteHealthPolicyResponse,
  DeleteHealthPolicyResponseSchema,
  HealthPolicyService,
  type SetHealthPolicyRequest,
  type SetHealthPolicyResponse,
  SetHealthPolicyResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { changePolicy, formatPolicyScope, policyDeletedEvent } from "@rollcall/domain";
import { auditOf, commit, messageCodec, type Operation, readOperation } from "@rollcall/operations";
import {
  type Change,
  deleteHealthPolicy as deletePolicy,
  getHealthPolicy,
  lockHealthPolicies,
  lockNamedNode,
  saveHealthPolicy,
  type Tx,
} from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";
import { policyToProto } from "./convert.ts";
import { editPolicy, parseScope } from "./policy-edit.ts";
import { checkPolicyEtag, planPolicyEdit, policyNotFound } from "./policy-plan.ts";

/** Create or change one health policy. */
export function setHealthPolicy(
  services: AdminServices,
): MethodImpl<typeof HealthPolicyService.method.setHealthPolicy> {
  const method = HealthPolicyService.method.setHealthPolicy;
  const options = { codec: messageCodec(SetHealthPolicyResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, (tx) => setPolicyIn(tx, operation, request));
  };
}

export function deleteHealthPolicy(
  services: AdminServices,
): MethodImpl<typeof HealthPolicyService.method.deleteHealthPolicy> {
  const method = HealthPolicyService.method.deleteHealthPolicy;
  const options = { codec: messageCodec(DeleteHealthPolicyResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, (tx) => deletePolicyIn(tx, operation, request));
  };
}

/** Create or change one health policy within an operation's transaction. */
export async function setPolicyIn(
  tx: Tx,
  operation: Operation,
  request: SetHealthPolicyRequest,
): Promise<Change<SetHealthPolicyResponse>> {
  // Wait for other policy changes before locking the node. Lock the node's row before the rows of its policies, in
  // the same order as when a node is deleted.
  await lockHealthPolicies(tx);
  const scope = await parseScope(request.scope, (id) => lockNamedNode(tx, id));
  const current = await getHealthPolicy(tx, scope);
  checkPolicyEtag(scope, current, request.etag);
  const before = current?.entry ?? null;
  const entry = editPolicy(scope, before, request);
  const changes = await planPolicyEdit(tx, { kind: "set", entry });
  const { actor, message } = operation.by;
  const { effects, events } = changePolicy(before, entry, operation.by);
  let record = current;
  for (const changed of effects) record = await saveHealthPolicy(tx, changed, { actor, message });
  const policy = record === null ? {} : { policy: policyToProto(record) };
  return {
    result: create(SetHealthPolicyResponseSchema, { ...policy, changedNodes: changes.length }),
    events,
    audit: [auditOf(operation, formatPolicyScope(scope))],
  };
}

/** Remove one health policy within an operation's transaction. */
export async function deletePolicyIn(
  tx: Tx,
  operation: Operation,
  request: DeleteHealthPolicyRequest,
): Promise<Change<DeleteHealthPolicyResponse>> {
  await lockHealthPolicies(tx);
  const scope = await parseScope(request.scope, (id) => lockNamedNode(tx, id));
  const current = await getHealthPolicy(tx, scope);
  if (current === null) throw await policyNotFound(tx, scope);
  checkPolicyEtag(scope, current, request.etag);
  const changes = await planPolicyEdit(tx, { kind: "delete", scope });
  await deletePolicy(tx, scope);
  const policy = policyToProto(current);
  return {
    result: create(DeleteHealthPolicyResponseSchema, { policy, changedNodes: changes.length }),
    events: [policyDeletedEvent(current.entry, operation.by)],
    audit: [auditOf(operation, formatPolicyScope(scope))],
  };
}
