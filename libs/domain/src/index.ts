export {
  type AccessTokenFacts,
  type AccessTokenState,
  accessTokenCreated,
  accessTokenRevoked,
  accessTokenState,
  type Revoker,
  revocationRefusal,
  strangersTokenRefusal,
} from "./access-token.ts";
export { addressGroup } from "./address-group.ts";
export {
  type AgentKeys,
  afterAccepted,
  afterAnswer,
  afterNewKey,
  afterRefused,
  keysOnDisk,
  keyToUse,
  type RotationAnswer,
} from "./agent-keys.ts";
export { ArrivalLimiter, type ArrivalLimits, type ArrivalVerdict } from "./arrival-limiter.ts";
export { fullJitter } from "./backoff.ts";
export {
  BAN_LIFTED,
  bannedRefusal,
  isBanned,
  isKeyFingerprint,
  MEMBERSHIP_BANNED,
} from "./ban.ts";
export * from "./brake/index.ts";
export { BucketTable } from "./bucket-table.ts";
export {
  type CallLimits,
  type CallParty,
  CallPlaces,
  type CallRow,
  DEFAULT_CALL_LIMITS,
} from "./call-places.ts";
export { clientAddress, type ForwardingHeaders, type HostJudgement } from "./client-address.ts";
export {
  type CollectableNode,
  type CollectionReason,
  type CollectionSettings,
  decideCollection,
} from "./collection.ts";
export { caselessId, checkNewId, isIdBanned } from "./confusable-id.ts";
export { type ConnectionSignal, connectionAfter } from "./connection.ts";
export { type DescriptorNeeds, type DescriptorPlan, planDescriptors } from "./descriptor-plan.ts";
export { Detector, type Due, type Watch } from "./detector.ts";
export {
  DUPLICATE_QUIET_MS,
  duplicatedHealth,
  findDuplicate,
  identityClearedEvent,
  identityDuplicatedEvent,
  isDuplicateOver,
  isSamePair,
  latestPair,
  type MachinePair,
  type MachineSighting,
  MOST_SIGHTINGS,
} from "./duplicate-identity.ts";
export {
  EVENT_CATALOGUE,
  EVENT_TYPES,
  type EventDescription,
  isEventType,
} from "./event-catalogue.ts";
export { formatEventCatalogue } from "./event-page.ts";
export {
  banEvent,
  connectionEvent,
  type EventType,
  healthEvent,
  type Json,
  type MembershipEventType,
  membershipEvent,
  type NewEvent,
  schedulingEvent,
  sessionMovedEvent,
} from "./events.ts";
export {
  FailureLimiter,
  type FailureLimiterOptions,
  NODE_FAILURE_LIMITS,
  TOKEN_FAILURE_LIMITS,
} from "./failure-limiter.ts";
export { matchesGlob } from "./glob.ts";
export { type HealthSignal, healthAfter } from "./health.ts";
export {
  collectPolicies,
  describePolicyScope,
  formatPolicyScope,
  type GroupPolicy,
  type HealthPolicies,
  MAX_GROUP_POLICIES,
  MAX_NODE_POLICIES,
  NO_HEALTH_POLICIES,
  type PolicyEntry,
  type PolicyOverride,
  type PolicyScope,
  parsePolicyScope,
  scopeOf,
  withoutPolicy,
  withPolicy,
} from "./health-policies.ts";
export { HelloAdmission, type HelloVerdict } from "./hello-admission.ts";
export { isRequestForUs } from "./host-names.ts";
export {
  AMOUNTS_REST_MS,
  type Amounts,
  changeOfReport,
  isJitter,
  type ReportChange,
  SteadyAmounts,
} from "./info-amounts.ts";
export {
  labelsEvent,
  type NewsOfNode,
  type NodeBeforeReport,
  nodeInfoEvents,
} from "./info-events.ts";
export {
  type AdmittingToken,
  clusterShortId,
  type JoinTokenEnforcement,
  type JoinTokenFacts,
  type JoinTokenRefusal,
  type JoinTokenState,
  joinTokenEvent,
  joinTokenInvalid,
  joinTokenOfOtherCluster,
  joinTokenRefusal,
  joinTokenRequired,
  joinTokenState,
  joinTokenText,
  type PresentedJoinToken,
  parseJoinToken,
} from "./join-token.ts";
export { keyOfferedEvent, keyRotatedEvent, keyRotationRequiredEvent } from "./key-events.ts";
export {
  acceptKey,
  decideRotation,
  type KeyVerdict,
  type NodeIdentity,
  type RotationDecision,
  type RotationRequest,
} from "./key-rotation.ts";
export {
  changeOperatorLabels,
  checkAgentLabels,
  checkLabelChange,
  type EffectiveLabel,
  effectiveLabels,
  GROUP_LABEL,
  isLabelKey,
  isLabelValue,
  type Label,
  type LabelChange,
  type LabelTier,
  type LabelViolation,
  labelsOfOthers,
  MAX_AGENT_LABELS,
  MAX_OPERATOR_LABELS,
  RESERVED_LABEL_PREFIX,
} from "./labels.ts";
export { LeaseObserver, type LeaseReading } from "./lease-observer.ts";
export {
  type CommandSource,
  decideMembership,
  type MembershipCommand,
  type MembershipDecision,
  type MembershipOutcome,
  type MembershipSubject,
} from "./membership.ts";
export { isNodeId, NODE_ID_PATTERN, type NodeRefResolution, resolveNodeRef } from "./node-id.ts";
export {
  DEFAULT_NOISE_LIMITS,
  type NoiseLimits,
  type NoiseSummary,
  NoiseTable,
} from "./noise-table.ts";
export { ObservedTime } from "./observed-time.ts";
export {
  heartbeatsPerSecond,
  mayAdmit,
  nextFactor,
  type PacedGroup,
  pacedIntervalMs,
  reconnectWindow,
  stretchFactor,
} from "./pacing.ts";
export { PAGE_BYTES, type PageLimits, PageRoom, splitBySize } from "./page-room.ts";
export { MAX_SELECTOR_LENGTH, parseSelector, type SelectorParseResult } from "./parse-selector.ts";
export {
  checkPolicy,
  DEFAULT_HEALTH_POLICY,
  type HealthPolicy,
  type Intervals,
  intervalsFor,
  laxerThresholds,
  longestHeartbeatMs,
  NO_WISHES,
  type PolicyValue,
  policyThresholds,
  type Thresholds,
  thresholdsOf,
  type Wishes,
} from "./policy.ts";
export {
  changedPolicies,
  describeSource,
  isSamePolicy,
  newContradictions,
  type PolicyChange,
  type PolicyContradiction,
} from "./policy-changes.ts";
export {
  isSamePolicies,
  isSamePolicyEntry,
  policyDeletedEvent,
  policyFacts,
  policyFromFacts,
  policyOfEvent,
  policySetEvent,
} from "./policy-events.ts";
export {
  isPolicyField,
  POLICY_FIELD_NAMES,
  POLICY_FIELDS,
  type PolicyField,
} from "./policy-fields.ts";
export { proofText } from "./proof.ts";
export { PUBLIC_KEY_BYTES, type PublicKeyFlaw, publicKeyFlaw } from "./public-key.ts";
export {
  chooseTarget,
  DEFAULT_REBALANCE_LIMITS,
  type MovePlan,
  type MoveTarget,
  planMoves,
  type RebalanceLimits,
  type RebalanceReason,
  type RebalanceView,
  type ReplicaLoad,
} from "./rebalance.ts";
export type { Refusal, RefusalReason } from "./refusal.ts";
export { chooseWithin, type RetryRange, rejectedRetry, spreadRetry } from "./rejected-retry.ts";
export {
  PolicyResolver,
  type PolicySource,
  type PolicySubject,
  type ResolvedPolicy,
  resolvePolicy,
} from "./resolve-policy.ts";
export {
  formatSelector,
  labelNumber,
  matches,
  type Requirement,
  type Selector,
} from "./selectors.ts";
export {
  AWAITING_HELLO,
  closeSession,
  decideFrame,
  type FrameDecision,
  type FrameKind,
  NO_SEQUENCE,
  onBeat,
  openSession,
  type SessionRefusalReason,
  type SessionState,
} from "./session.ts";
export {
  type Connection,
  type ConnectionState,
  deriveScheduling,
  effectiveHealth,
  type Health,
  type HealthState,
  type Hold,
  type HoldKind,
  hasStatus,
  liftHold,
  type Mark,
  type Membership,
  type MembershipState,
  mayTakeWork,
  type NodeType,
  placeHold,
  type Scheduling,
  type SchedulingState,
  type Stated,
} from "./states.ts";
export {
  DEFAULT_STRANGER_BUDGET,
  StrangerBudget,
  type StrangerBudgetLimits,
} from "./stranger-budget.ts";
export { DEFAULT_STREAM_LOSS_LIMITS, StreamLoss, type StreamLossLimits } from "./stream-loss.ts";
export { explainTlsError, type TlsTrouble } from "./tls-trouble.ts";
export {
  type BucketLimits,
  fillBucket,
  fullBucket,
  msUntilOne,
  type TokenBucket,
  takeOne,
} from "./token-bucket.ts";
export * from "./truth.ts";
