import type { Migration } from "kysely/migration";
import { log } from "./0001-log.ts";
import { nodes } from "./0002-nodes.ts";
import { sessions } from "./0003-sessions.ts";
import { access } from "./0004-access.ts";
import { compaction } from "./0005-compaction.ts";
import { relay } from "./0006-relay.ts";
import { connectionIndex } from "./0007-connection-index.ts";
import { audit } from "./0008-audit.ts";
import { accessTokens } from "./0009-access-tokens.ts";
import { joinTokens } from "./0010-join-tokens.ts";
import { bans } from "./0011-bans.ts";
import { keyRotation } from "./0012-key-rotation.ts";
import { healthPolicies } from "./0013-health-policies.ts";
import { brake } from "./0014-brake.ts";
import { nodeTruth } from "./0015-node-truth.ts";
import { leaseSessions } from "./0017-lease-sessions.ts";
import { caselessIds } from "./0018-caseless-ids.ts";
import { displacedReplicas } from "./0019-displaced-replicas.ts";
import { work } from "./0020-work.ts";
import { drains } from "./0021-drains.ts";
import { adoptedGrants } from "./0023-adopted-grants.ts";
import { processReports } from "./0025-process-reports.ts";
import { auditCut } from "./0026-audit-cut.ts";
import { webhooks } from "./0027-webhooks.ts";
import { consoleSessions } from "./0029-console-sessions.ts";
import { declaredState } from "./0030-declared-state.ts";
import { joinedFrom } from "./0031-joined-from.ts";
import { suspectedReboots } from "./0038-suspected-reboots.ts";
import { disturbedNodes } from "./0039-disturbed-nodes.ts";
import { unknownExecutions } from "./0041-unknown-executions.ts";
import { jobReverts } from "./0042-job-reverts.ts";
import { ownerQuotas } from "./0043-owner-quotas.ts";
import { jobRollouts } from "./0044-job-rollouts.ts";
import { groupsLeftOut } from "./0045-groups-left-out.ts";
import { requestDigests } from "./0046-request-digests.ts";
import { stopOrders } from "./0047-stop-orders.ts";
import { waitingNodes } from "./0048-waiting-nodes.ts";

/**
 * Every migration, keyed by its stored name. The list is code, because a bundle has no folder
 * to read migrations from.
 */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "0001-log": log,
  "0002-nodes": nodes,
  "0003-sessions": sessions,
  "0004-access": access,
  "0005-compaction": compaction,
  "0006-relay": relay,
  "0007-connection-index": connectionIndex,
  "0008-audit": audit,
  "0009-access-tokens": accessTokens,
  "0010-join-tokens": joinTokens,
  "0011-bans": bans,
  "0012-key-rotation": keyRotation,
  "0013-health-policies": healthPolicies,
  "0014-brake": brake,
  "0015-node-truth": nodeTruth,
  "0017-lease-sessions": leaseSessions,
  "0018-caseless-ids": caselessIds,
  "0019-displaced-replicas": displacedReplicas,
  "0020-work": work,
  "0021-drains": drains,
  "0023-adopted-grants": adoptedGrants,
  "0025-process-reports": processReports,
  "0026-audit-cut": auditCut,
  "0027-webhooks": webhooks,
  "0029-console-sessions": consoleSessions,
  "0030-declared-state": declaredState,
  "0031-joined-from": joinedFrom,
  "0038-suspected-reboots": suspectedReboots,
  "0039-disturbed-nodes": disturbedNodes,
  "0041-unknown-executions": unknownExecutions,
  "0042-job-reverts": jobReverts,
  "0043-owner-quotas": ownerQuotas,
  "0044-job-rollouts": jobRollouts,
  "0045-groups-left-out": groupsLeftOut,
  "0046-request-digests": requestDigests,
  "0047-stop-orders": stopOrders,
  "0048-waiting-nodes": waitingNodes,
};
