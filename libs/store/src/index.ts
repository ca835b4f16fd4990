export { AccessTokenUses, type AccessTokenUsesOptions } from "./access/access-token-uses.ts";
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
} from "./access/access-tokens.ts";
export { AUDIT_OK, type NewAuditEntry } from "./access/audit.ts";
export {
  type AuditEntry,
  type AuditHead,
  type ListAuditOptions,
  listAudit,
} from "./access/audit-log.ts";
export {
  type AuthenticatorOptions,
  accessTokenHash,
  createAuthenticator,
} from "./access/authenticator.ts";
export {
  type Ban,
  type BannableNames,
  deleteBans,
  findBans,
  insertBan,
  listBans,
  lockBans,
  type NewBan,
} from "./access/bans.ts";
export { pruneChallenges, useChallenge, useChallenges } from "./access/challenges.ts";
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
} from "./access/join-tokens.ts";
export {
  createRefusalRecorder,
  type RefusalRecorder,
  type RefusalRecorderOptions,
} from "./access/refusal-recorder.ts";
export { firstAnswer, pruneRequestIds, type RequestKey, saveAnswer } from "./access/request-ids.ts";
export {
  AUDIT_START,
  type AuditProblem,
  type AuditProblemKind,
  type AuditVerdict,
  type VerifyAuditOptions,
  verifyAudit,
} from "./access/verify-audit.ts";
export type { Change, CommittedChange } from "./database/change.ts";
export { exposePools } from "./database/expose-pools.ts";
export { migrate } from "./database/migrate.ts";
export { createRecordCheck } from "./database/record-check.ts";
export type { Database } from "./database/schema.ts";
export {
  type CallStore,
  type Db,
  type LaneStore,
  openStore,
  type ReservedStore,
  type Store,
  type StoreOptions,
  type Tx,
} from "./database/store.ts";
export {
  createLeaseKeeper,
  createLeaseKeeperOf,
  type LeaseKeeper,
  type LeaseKeeperOptions,
  type LeaseKeeping,
  type LeaseRecord,
} from "./leases/lease-keeper.ts";
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
} from "./leases/leases.ts";
export { type LeasedTask, type LeasedTaskOptions, leasedTask } from "./leases/task-leases.ts";
export {
  beginUpkeepRun,
  endUpkeepRun,
  listUpkeepRuns,
  type UpkeepOutcome,
  type UpkeepRun,
} from "./leases/upkeep-runs.ts";
export { type CompactOptions, compactEvents, compactedRevision } from "./log/compaction.ts";
export {
  openRelay,
  RELAY_LEASE,
  type RelayCursor,
  type RelayRewind,
  type RelayState,
  readRelay,
  rewindRelay,
  saveRelay,
} from "./log/event-relay.ts";
export {
  appendEvents,
  currentRevision,
  type EventBatch,
  type ReadEventsOptions,
  readEvents,
  readLatestEvents,
  type StoredEvent,
} from "./log/events.ts";
export { EventFeed, type EventFeedOptions, type FeedListener } from "./log/feed.ts";
export { changedNodeIds, isNodeChange, openSnapshot, type Snapshot } from "./log/snapshot.ts";
export { beginAdmission } from "./nodes/admission-locks.ts";
export { findGoneNodes, isHealthServed, removeGoneNodes } from "./nodes/collect-nodes.ts";
export {
  expireOrchestrators,
  joinAsOrchestrator,
  type LostOrchestrator,
  type OrchestratorNode,
  orchestratorLost,
} from "./nodes/control-plane-nodes.ts";
export { clearDuplicates } from "./nodes/duplicates.ts";
export { acceptHardware, hardwareIn } from "./nodes/hardware.ts";
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
} from "./nodes/identities.ts";
export { joinedWithoutToken, saveJoining } from "./nodes/joining.ts";
export { labelsOf, replaceLabels } from "./nodes/labels.ts";
export {
  type ListedNode,
  type ListNodesOptions,
  listNodeIds,
  type NodeCursor,
  type NodeFilter,
  type NodeOrderColumn,
  readListing,
} from "./nodes/list-nodes.ts";
export { saveMark } from "./nodes/marks.ts";
export { insertComputeNodes, type NewComputeNode, RecordMovedError } from "./nodes/new-nodes.ts";
export type { InfoSummary, JsonInfo, NodeJoining, NodeRecord } from "./nodes/node-record.ts";
export { findNode, lockNamedNode, type ResolvedRefs, resolveRefs } from "./nodes/node-reference.ts";
export {
  type OwnersView,
  recordedTroubles,
  settleTruth,
  type TroubledNode,
  troubledNodes,
} from "./nodes/node-truth.ts";
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
} from "./nodes/nodes.ts";
export { countThatFit, readNodes } from "./nodes/read-nodes.ts";
export {
  type Capacity,
  type ClusterSummary,
  clusterSummary,
  type NodeCounts,
  type StateCount,
} from "./nodes/summary.ts";
export {
  collectedAmong,
  getTombstone,
  listTombstones,
  pruneTombstones,
  type Tombstone,
} from "./nodes/tombstones.ts";
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
export { endCrashedProcess } from "./sessions/process-end.ts";
export { type AllowedReaction, allowReactions, lossBefore } from "./sessions/reactions.ts";
export {
  coresOfHeld,
  ownersAfter,
  ownersOf,
  type SessionOwner,
} from "./sessions/session-owners.ts";
export {
  type HeldNode,
  heldBy,
  openSessions,
  type SessionHello,
  type SessionOpening,
  type SessionOrigin,
} from "./sessions/sessions.ts";
export { type StateChange, type Transition, writeTransitions } from "./sessions/transitions.ts";
