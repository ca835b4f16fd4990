import type { ConnectRouter } from "@connectrpc/connect";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { BrakeService } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { DeclaredStateService } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { DiagnosisService } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import { ACCESS_POLICIES, routeAccess } from "./access/access-methods.ts";
import { AUDIT_POLICIES, routeAudit } from "./audit/audit-methods.ts";
import { banMethods } from "./bans/ban-methods.ts";
import { BRAKE_POLICIES, routeBrake } from "./brake/brake-methods.ts";
import { DECLARED_STATE_POLICIES, routeDeclaredState } from "./declared/declared-methods.ts";
import { DIAGNOSIS_POLICIES, routeDiagnosis } from "./diagnosis/diagnosis-methods.ts";
import { JOIN_TOKEN_POLICIES, routeJoinTokens } from "./join-tokens/join-token-methods.ts";
import { drainMethods } from "./nodes/drain-methods.ts";
import { nodeMethods } from "./nodes/node-methods.ts";
import { HEALTH_POLICY_POLICIES, routeHealthPolicies } from "./policies/policy-methods.ts";
import { routeWebhooks, WEBHOOK_POLICIES } from "./webhooks/webhook-methods.ts";
import type { WebhookServices } from "./webhooks/webhook-services.ts";

/** The services that admin serves. */
export const SERVICES = [
  AdminService,
  AccessService,
  JoinTokenService,
  AuditService,
  HealthPolicyService,
  BrakeService,
  DiagnosisService,
  WebhookService,
  DeclaredStateService,
];

/**
 * The policy of decisions. Clients must not retry a decision automatically, because without a request id, a
 * repeated decision is refused.
 */
const DECISION: MethodPolicy = { caller: "operator", deadlineMs: 30_000, idempotent: false };
const READING: MethodPolicy = { caller: "viewer", deadlineMs: 10_000, idempotent: true };
const WATCHING: MethodPolicy = { caller: "viewer", deadlineMs: 0, idempotent: true };

/** Who can call each method, its deadline, and whether clients can retry it automatically. */
export const POLICIES: PolicyTable = {
  ...definePolicies(AdminService, {
    approveNode: DECISION,
    rejectNode: DECISION,
    deleteNode: DECISION,
    cordonNode: DECISION,
    uncordonNode: DECISION,
    requireKeyRotation: DECISION,
    acceptNodeHardware: DECISION,
    markNodeUnhealthy: DECISION,
    clearNodeMark: DECISION,
    banNode: DECISION,
    unbanNode: DECISION,
    listBans: READING,
    setNodeLabels: DECISION,
    drainNode: DECISION,
    cancelDrain: DECISION,
    getDrain: READING,
    watchDrain: WATCHING,
  }),
  ...ACCESS_POLICIES,
  ...HEALTH_POLICY_POLICIES,
  ...BRAKE_POLICIES,
  ...DIAGNOSIS_POLICIES,
  ...AUDIT_POLICIES,
  ...JOIN_TOKEN_POLICIES,
  ...WEBHOOK_POLICIES,
  ...DECLARED_STATE_POLICIES,
};

/** Returns a function that registers admin's methods. */
export function createRoutes(services: WebhookServices): (router: ConnectRouter) => void {
  return (router) => {
    router.service(AdminService, { ...nodeMethods(services), ...banMethods(services), ...drainMethods(services) });
    routeAccess(router, services);
    routeHealthPolicies(router, services);
    routeBrake(router, services);
    routeDiagnosis(router, services);
    routeAudit(router, services);
    routeJoinTokens(router, services);
    routeWebhooks(router, services);
    routeDeclaredState(router, services);
  };
}
