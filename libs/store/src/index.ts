// Domain types that the store returns, exported again for its callers.
export type { InfoReport, JsonInfo, Node, OwnersView, StateChange, Transition } from "@rollcall/domain";
export { AccessTokenUses } from "./access/access-token-uses.ts";
export {
  type AccessToken,
  countAccessTokens,
  ensureAccessToken,
  findAccessToken,
  getAccessToken,
  hasAccessToken,
  insertAccessToken,
  listAccessTokens,
  lockAccessToken,
  pruneAccessTokens,
  revokeAccessToken,
  type TokenOwner,
} from "./access/access-tokens.ts";
export { type AuditCut, pruneAudit, readAuditCut } from "./access/audit-cut.ts";
export { type AuditEntry, type ListAuditOptions, listAudit } from "./access/audit-log.ts";
export { accessTokenHash, createAuthenticator } from "./access/authenticator.ts";
export { deleteBans, findBans, insertBan, listBans, lockBans } from "./access/bans.ts";
export {
  getJoinToken,
  insertJoinToken,
  type JoinToken,
  type JoinTokenUse,
  joinTokenHash,
  type LockedJoinToken,
  lastUsesOf,
  listJoinTokens,
  lockJoinToken,
  lockJoinTokens,
  type NewJoinToken,
  type PastUse,
  provenJoinToken,
  pruneJoinTokens,
  saveJoinTokenUses,
  saveRevocation,
} from "./access/join-tokens.ts";
export { createRefusalRecorder, type RefusalRecorder } from "./access/refusal-recorder.ts";
export { firstAnswer, pruneRequestIds, type RequestKey, saveAnswer } from "./access/request-ids.ts";
export { AUDIT_START, verifyAudit } from "./access/verify-audit.ts";
export * from "./backup/index.ts";
export { insertConsoleSession, lockSessions, lockSignIns } from "./console/sessions.ts";
export {
  countSignInCodes,
  endSignInCodes,
  findSignInCode,
  insertSignInCode,
  lockSignInCode,
  type SignInCode,
  useUpSignInCode,
} from "./console/sign-in-codes.ts";
export { AUDIT_OK, type NewAuditEntry } from "./database/audit.ts";
export type { Change } from "./database/change.ts";
export { type CheckConnectionsOptions, checkConnections } from "./database/check-connections.ts";
export { exposePools } from "./database/expose-pools.ts";
export { migrate } from "./database/migrate.ts";
export { findNearNames, withSuggestion } from "./database/near-names.ts";
export { together } from "./database/one-connection.ts";
export type { StoreAddress } from "./database/pool.ts";
export type { Database } from "./database/schema.ts";
export {
  type CallStore,
  type Db,
  openOwnConnections,
  openStore,
  type ReservedStore,
  type Store,
  storeTimeMs,
  type Tx,
} from "./database/store.ts";
export { type DatabaseProblem, databaseProblem, isReadOnly } from "./database/store-error.ts";
export {
  countDeclaredObjects,
  forgetDeclaredObjects,
  lockDeclaredState,
  readDeclaredObjects,
  saveDeclaredObjects,
} from "./declared/declared-objects.ts";
export { type ClusterCensus, takeCensus } from "./diagnosis/cluster-census.ts";
export {
  listProcessReports,
  type ProcessFacts,
  type ProcessReport,
  saveProcessReport,
} from "./diagnosis/process-reports.ts";
export { createStoreCheck } from "./diagnosis/store-check.ts";
export {
  type AgentTrustFacts,
  type AgentVersion,
  countAgentTrust,
  countAgentVersions,
  listDuplicatedNodes,
  listStatementWaits,
  listUncontainedNodes,
  listUnknownResources,
  readStoreFacts,
  type Standby,
  type StatementWait,
  type StoreFacts,
} from "./diagnosis/store-facts.ts";
export {
  createLeaseKeeper,
  createLeaseKeeperOf,
  type LeaseKeeper,
  type LeaseKeeperOptions,
  type LeaseStore,
} from "./leases/lease-keeper.ts";
export {
  expireLease,
  type Lease,
  type LeaseReport,
  listLeases,
  readLease,
  releaseLease,
  renewLease,
  takeLease,
} from "./leases/leases.ts";
export { endCrashedProcess } from "./leases/process-end.ts";
export {
  type LeasedTask,
  type LeasedTaskOptions,
  leasedTask,
  leasedTaskOf,
  type TaskLeaseStore,
} from "./leases/task-leases.ts";
export {
  beginUpkeepRun,
  endUpkeepRun,
  listUpkeepRuns,
  type UpkeepOutcome,
  type UpkeepRun,
} from "./leases/upkeep-runs.ts";
export { compactEvents, compactedRevision } from "./log/compaction.ts";
export {
  openRelay,
  RELAY_LEASE,
  type RelayCursor,
  type RelayState,
  readRelay,
  rewindRelay,
  saveRelay,
} from "./log/event-relay.ts";
export {
  currentRevision,
  type EventBatch,
  type EventRow,
  type ReadEventsOptions,
  readEvents,
  readLatestEvents,
} from "./log/events.ts";
export { exposeFeed } from "./log/expose-feed.ts";
export { EventFeed, type Following, type FollowOptions } from "./log/feed.ts";
export { CallLogReader } from "./log/log-reader.ts";
export type { NotificationState } from "./log/notifications.ts";
export { changedNodeIds, openSnapshot, type Snapshot } from "./log/snapshot.ts";
export { findGoneNodes, isHealthServed, removeGoneNodes } from "./nodes/collect-nodes.ts";
export { clearDuplicates, recordedTroubles, settleConditions, troubledNodes } from "./nodes/conditions.ts";
export {
  expireOrchestrators,
  joinAsOrchestrator,
  type OrchestratorNode,
  orchestratorLost,
} from "./nodes/control-plane-nodes.ts";
export {
  keyOf,
  keysInForce,
  type NodeKey,
  type NodeKeys,
  ownersOfKeys,
  type PublicKey,
  promoteKey,
  pruneChallenges,
  saveNextKey,
  useChallenge,
  useChallenges,
} from "./nodes/identities.ts";
export { labelsOf, replaceLabels } from "./nodes/labels.ts";
export {
  type ListedNode,
  type ListNodesOptions,
  listNodeIds,
  NODE_ORDER_COLUMNS,
  type NodeCursor,
  type NodeFilter,
  type NodeOrderColumn,
  readListing,
} from "./nodes/list-nodes.ts";
export { beginAdmission, insertComputeNodes, type NewComputeNode, StoreMovedError } from "./nodes/new-nodes.ts";
export {
  findKnownNodes,
  findNode,
  findNodeByPrefix,
  lockNamedNode,
  nodeNotFound,
  type SelectedIds,
  selectNodeIds,
  thoseThatMatch,
} from "./nodes/node-reference.ts";
export { getNode, getNodes, insertNode, lockAlikeNodes, lockNode, lockNodes, lockWithSessions } from "./nodes/nodes.ts";
export { countThatFit, readNodes } from "./nodes/read-nodes.ts";
export { saveInfo } from "./nodes/save-info.ts";
export { removeNode, saveNodeEffects } from "./nodes/save-node.ts";
export { type Capacity, clusterSummary, countLabels, joinedWithoutToken, type StateCount } from "./nodes/summary.ts";
export { collectedAmong, getTombstone, listTombstones, pruneTombstones, type Tombstone } from "./nodes/tombstones.ts";
export {
  configuredPolicy,
  deleteHealthPolicy,
  getHealthPolicy,
  type HealthPolicyRow,
  lockHealthPolicies,
  readHealthPolicies,
  readHealthPolicyList,
  saveHealthPolicy,
  tellConfiguredPolicy,
} from "./policies/health-policies.ts";
export {
  type LabelsOfNode,
  labelSetsOf,
  NO_LABELS,
  policySubject,
  policySubjects,
} from "./policies/policy-subjects.ts";
export { type AdoptedNode, adoptOrphans } from "./sessions/adoption.ts";
export {
  BRAKE_LEASE,
  forgetBrakes,
  holdBrakeLease,
  listBrakes,
  lockBrake,
  readBrake,
  readShownBrakes,
  saveBrake,
  saveFollowed,
  saveFreeze,
  saveOrder,
} from "./sessions/brakes.ts";
export {
  advertise,
  type HealthReplica,
  type LiveReplica,
  listHealthReplicas,
  withdraw,
} from "./sessions/health-replicas.ts";
export type { SessionHello } from "./sessions/open-round.ts";
export { type AllowedReaction, allowReactions, lossBefore } from "./sessions/reactions.ts";
export { coresOfHeld, ownersAfter, ownersOf, type SessionOwner } from "./sessions/session-owners.ts";
export { heldBy, type OwnedSession, openSessions, type SessionOpening } from "./sessions/sessions.ts";
export { writeTransitions } from "./sessions/transitions.ts";
export {
  type OpenWebhook,
  openWebhook,
  pauseWebhook,
  readWebhookHeads,
  saveDelivery,
  tellBehind,
  WEBHOOK_LEASE,
  type WebhookHead,
} from "./webhooks/deliveries.ts";
export { subjectLabels } from "./webhooks/subject-labels.ts";
export {
  type BlockedSubjectRow,
  countWebhooks,
  deleteWebhook,
  getWebhook,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  lockWebhooks,
  readBacklog,
  replayWebhook,
  updateWebhook,
  type WebhookPlace,
  type WebhookRow,
} from "./webhooks/webhooks.ts";
export * from "./work/index.ts";
