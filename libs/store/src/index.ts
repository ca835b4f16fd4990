export { AccessTokenUses, type AccessTokenUsesOptions } from "./access-token-uses.ts";
export {
  type AccessToken,
  countAccessTokens,
  ensureAccessToken,
  findAccessToken,
  getAccessToken,
  hasAccessToken,
  insertAccessToken,
  type ListAccessTokensOptions,
  listAccessTokens,
  lockAccessToken,
  type NewAccessToken,
  pruneAccessTokens,
  revokeAccessToken,
} from "./access-tokens.ts";
export { beginAdmission } from "./admission-locks.ts";
export { type AdoptedNode, adoptOrphans } from "./adoption.ts";
export { AUDIT_OK, type NewAuditEntry } from "./audit.ts";
export { type AuditEntry, type AuditHead, type ListAuditOptions, listAudit } from "./audit-log.ts";
export {
  type AuthenticatorOptions,
  accessTokenHash,
  createAuthenticator,
} from "./authenticator.ts";
export {
  type Ban,
  type BannableNames,
  deleteBans,
  findBans,
  insertBan,
  listBans,
  lockBans,
  type NewBan,
} from "./bans.ts";
export {
  BRAKE_LEASE,
  forgetBrakes,
  holdBrakeLease,
  listBrakes,
  lockBrake,
  readBrake,
  saveBrake,
  saveFollowed,
  saveFreeze,
  saveOrder,
} from "./brakes.ts";
export { pruneChallenges, useChallenge, useChallenges } from "./challenges.ts";
export type { Change, CommittedChange } from "./change.ts";
export { findGoneNodes, isHealthServed, removeGoneNodes } from "./collect-nodes.ts";
export { type CompactOptions, compactEvents, compactedRevision } from "./compaction.ts";
export {
  expireOrchestrators,
  joinAsOrchestrator,
  type LostOrchestrator,
  type OrchestratorNode,
  orchestratorLost,
} from "./control-plane-nodes.ts";
export { clearDuplicates } from "./duplicates.ts";
export {
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
export {
  openRelay,
  RELAY_LEASE,
  type RelayCursor,
  type RelayRewind,
  type RelayState,
  readRelay,
  rewindRelay,
  saveRelay,
} from "./event-relay.ts";
export {
  appendEvents,
  currentRevision,
  type EventBatch,
  type ReadEventsOptions,
  readEvents,
  readLatestEvents,
  type StoredEvent,
} from "./events.ts";
export { exposePools } from "./expose-pools.ts";
export { EventFeed, type EventFeedOptions, type FeedListener } from "./feed.ts";
export { acceptHardware, hardwareIn } from "./hardware.ts";
export {
  configuredPolicy,
  deleteHealthPolicy,
  getHealthPolicy,
  type HealthPolicyRecord,
  type HealthPolicySnapshot,
  lockHealthPolicies,
  readHealthPolicies,
  readHealthPolicyList,
  saveHealthPolicy,
  tellConfiguredPolicy,
} from "./health-policies.ts";
export {
  advertise,
  type HealthReplica,
  type LiveReplica,
  listHealthReplicas,
  withdraw,
} from "./health-replicas.ts";
export {
  keyOf,
  keysInForce,
  type NodeKey,
  type NodeKeys,
  ownersOfKeys,
  type PublicKey,
  promoteKey,
  requireRotation,
  saveKey,
  saveNextKey,
} from "./identities.ts";
export {
  getJoinToken,
  insertJoinToken,
  type JoinToken,
  type JoinTokenPage,
  type JoinTokenRevocation,
  type JoinTokenUse,
  joinTokenHash,
  type LockedJoinToken,
  lastUsesOf,
  listJoinTokens,
  lockJoinToken,
  lockJoinTokens,
  type NewJoinToken,
  type PastUse,
  pruneJoinTokens,
  saveJoinTokenUses,
  saveRevocation,
} from "./join-tokens.ts";
export { joinedWithoutToken, saveJoining } from "./joining.ts";
export { labelsOf, replaceLabels } from "./labels.ts";
export { createLeaseKeeper, type LeaseKeeper, type LeaseKeeperOptions } from "./lease-keeper.ts";
export {
  expireLease,
  type Lease,
  type LeaseClaim,
  type LeaseReport,
  listLeases,
  readLease,
  releaseLease,
  renewLease,
  takeLease,
} from "./leases.ts";
export {
  type ListedNode,
  type ListNodesOptions,
  listNodeIds,
  type NodeCursor,
  type NodeFilter,
  type NodeOrderColumn,
  readListing,
} from "./list-nodes.ts";
export { saveMark } from "./marks.ts";
export { migrate } from "./migrate.ts";
export { insertComputeNodes, type NewComputeNode, RecordMovedError } from "./new-nodes.ts";
export type { InfoSummary, JsonInfo, NodeJoining, NodeRecord } from "./node-record.ts";
export { findNode, lockNamedNode, type ResolvedRefs, resolveRefs } from "./node-reference.ts";
export {
  type OwnersView,
  recordedTroubles,
  settleTruth,
  type TroubledNode,
  troubledNodes,
} from "./node-truth.ts";
export {
  getNode,
  getNodes,
  type InfoReport,
  insertNode,
  lockAlikeNodes,
  lockNode,
  lockNodes,
  lockWithSessions,
  type NewNode,
  type Removal,
  removeNode,
  saveHolds,
  saveInfo,
  saveLabels,
  saveMembership,
} from "./nodes.ts";
export {
  type LabelsOfNode,
  labelSetsOf,
  NO_LABELS,
  policySubject,
  policySubjects,
} from "./policy-subjects.ts";
export { endCrashedProcess } from "./process-end.ts";
export { type AllowedReaction, allowReactions, lossBefore } from "./reactions.ts";
export { countThatFit, readNodes } from "./read-nodes.ts";
export { createRecordCheck } from "./record-check.ts";
export {
  createRefusalRecorder,
  type RefusalRecorder,
  type RefusalRecorderOptions,
} from "./refusal-recorder.ts";
export { firstAnswer, pruneRequestIds, type RequestKey, saveAnswer } from "./request-ids.ts";
export type { Database } from "./schema.ts";
export { coresOfHeld, ownersAfter, ownersOf, type SessionOwner } from "./session-owners.ts";
export {
  type HeldNode,
  heldBy,
  openSessions,
  type SessionHello,
  type SessionOpening,
  type SessionOrigin,
} from "./sessions.ts";
export { changedNodeIds, isNodeChange, openSnapshot, type Snapshot } from "./snapshot.ts";
export {
  type CallStore,
  type Db,
  type LaneStore,
  openStore,
  type ReservedStore,
  type Store,
  type StoreOptions,
  type Tx,
} from "./store.ts";
export {
  type Capacity,
  type ClusterSummary,
  clusterSummary,
  type NodeCounts,
  type StateCount,
} from "./summary.ts";
export { type LeasedTask, type LeasedTaskOptions, leasedTask } from "./task-leases.ts";
export {
  collectedAmong,
  getTombstone,
  listTombstones,
  pruneTombstones,
  type Tombstone,
} from "./tombstones.ts";
export { type StateChange, type Transition, writeTransitions } from "./transitions.ts";
export {
  beginUpkeepRun,
  endUpkeepRun,
  listUpkeepRuns,
  type UpkeepOutcome,
  type UpkeepRun,
} from "./upkeep-runs.ts";
export {
  AUDIT_START,
  type AuditProblem,
  type AuditProblemKind,
  type AuditVerdict,
  type VerifyAuditOptions,
  verifyAudit,
} from "./verify-audit.ts";
