export {
  type AccessToken,
  ensureAccessToken,
  findAccessToken,
  hasAccessToken,
  type NewAccessToken,
} from "./access-tokens.ts";
export { type AdoptedNode, adoptOrphans } from "./adoption.ts";
export {
  type AuthenticatorOptions,
  accessTokenHash,
  createAuthenticator,
} from "./authenticator.ts";
export { pruneChallenges, useChallenge, useChallenges } from "./challenges.ts";
export type { Change, CommittedChange } from "./change.ts";
export { type CompactOptions, compactEvents, compactedRevision } from "./compaction.ts";
export {
  expireOrchestrators,
  joinAsOrchestrator,
  type LostOrchestrator,
  type OrchestratorNode,
  orchestratorLost,
} from "./control-plane-nodes.ts";
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
  type StoredEvent,
} from "./events.ts";
export { EventFeed, type EventFeedOptions, type FeedListener } from "./feed.ts";
export { advertise, type HealthReplica, listHealthReplicas, withdraw } from "./health-replicas.ts";
export { keyOf, type NodeKey, ownersOfKeys, saveKey } from "./identities.ts";
export { labelsOf } from "./labels.ts";
export { createLeaseKeeper, type LeaseKeeper, type LeaseKeeperOptions } from "./lease-keeper.ts";
export {
  expireLease,
  type Lease,
  type LeaseClaim,
  listLeases,
  readLease,
  releaseLease,
  renewLease,
  takeLease,
} from "./leases.ts";
export {
  type ListNodesOptions,
  listNodes,
  type NodeCursor,
  type NodeFilter,
  type NodeOrderColumn,
  type NodePage,
} from "./list-nodes.ts";
export { migrate } from "./migrate.ts";
export { insertComputeNodes, type NewComputeNode, RecordMovedError } from "./new-nodes.ts";
export type { InfoSummary, JsonInfo, NodeRecord } from "./node-record.ts";
export { findNode, lockNamedNode } from "./node-reference.ts";
export {
  getNode,
  getNodes,
  type InfoReport,
  insertNode,
  lockNode,
  lockNodes,
  type NewNode,
  type Removal,
  removeNode,
  saveHolds,
  saveInfo,
  saveMark,
  saveMembership,
} from "./nodes.ts";
export { firstAnswer, pruneRequestIds, type RequestKey, saveAnswer } from "./request-ids.ts";
export type { Database } from "./schema.ts";
export {
  type HeldNode,
  heldBy,
  openSessions,
  type SessionHello,
  type SessionOpening,
  type SessionOrigin,
} from "./sessions.ts";
export { changedNodeIds, openSnapshot, type Snapshot } from "./snapshot.ts";
export { type Db, openStore, type Store, type StoreOptions, type Tx } from "./store.ts";
export {
  type Capacity,
  type ClusterSummary,
  clusterSummary,
  type NodeCounts,
  type StateCount,
} from "./summary.ts";
export { type LeasedTask, type LeasedTaskOptions, leasedTask } from "./task-leases.ts";
export { getTombstone, listTombstones, pruneTombstones, type Tombstone } from "./tombstones.ts";
export { type StateChange, type Transition, writeTransitions } from "./transitions.ts";
export {
  beginUpkeepRun,
  endUpkeepRun,
  listUpkeepRuns,
  type UpkeepOutcome,
  type UpkeepRun,
} from "./upkeep-runs.ts";
