export {
  type AccessTokenFacts,
  type AccessTokenState,
  accessTokenCreated,
  accessTokenState,
  endAccessToken,
  type Revoker,
  strangersTokenRefusal,
} from "./access/access-token.ts";
export {
  type AuditHead,
  type AuditLink,
  type AuditPiece,
  type AuditProblem,
  type AuditProblemKind,
  type AuditVerdict,
  judgeAuditPiece,
  judgeExpectedHead,
} from "./access/audit-chain.ts";
export * from "./brake/index.ts";
export * from "./conditions/index.ts";
export { type BrowserVerdict, judgeBrowser } from "./console/browser-origin.ts";
export {
  fromSessionRefusal,
  moreCodesRefusal,
  SIGN_IN_LIMITS,
  type SignInCodeFacts,
  signInCodeRefusal,
} from "./console/sign-in.ts";
export type { Decided, Effects } from "./decided.ts";
export * from "./declared/index.ts";
export {
  DEFAULT_DRAIN_DEADLINE_MS,
  type DrainConditions,
  type DrainIntent,
  drainStartedEvent,
  drainWaitText,
  MAX_DRAIN_DEADLINE_MS,
} from "./drains/drain.ts";
export { cancelDrain, drainNode, drainsThatBegin, endDrain, type SelectedDrain } from "./drains/drain-decisions.ts";
export {
  EVENT_CATALOGUE,
  EVENT_TYPES,
  type EventDescription,
  isEventType,
} from "./events/event-catalogue.ts";
export {
  EVERY_EVENT,
  type EventInterest,
  isOfInterest,
  NO_EVENT,
  SESSION_EVENTS,
  unitedInterest,
} from "./events/event-interest.ts";
export {
  type EventEffect,
  effectOf,
  isNodeChange,
  mayEndWanted,
  NODE_CHANGES,
  replicaInterest,
} from "./events/event-meaning.ts";
export {
  banEvent,
  connectionEvent,
  type EventType,
  healthEvent,
  type JobEventType,
  type Json,
  type MembershipEventType,
  membershipEvent,
  type NewEvent,
  replicaActor,
  schedulingEvent,
  sessionMovedEvent,
} from "./events/events.ts";
export { describeChange, explainEvent, type ToldEvent } from "./events/explain-event.ts";
export {
  type ExecutionFacts,
  executionEvent,
  executionOrderedEvent,
  executionsPlacedEvents,
  type JobChangeReason,
  type JobFacts,
  jobChangedEvent,
  jobSubmittedEvent,
  MOST_PLACED_IDS,
  schedulerActor,
} from "./events/job-events.ts";
export { Detector, type Due, type Timing } from "./health/detector.ts";
export {
  type ExplainedNode,
  type Obstacle,
  obstaclesOf,
  summarizeNode,
} from "./health/explain-node.ts";
export {
  afterHealthChange,
  FLAPPING_WINDOW_MS,
  flappingEndedEvent,
  flappingHealth,
  flappingStartedEvent,
  type HealthHistory,
  isSteady,
  MOST_CHANGES,
  withinPast,
} from "./health/flapping.ts";
export { type HealthSignal, healthAfter } from "./health/health.ts";
export { evidenceFacts, type SilenceEvidence, silenceEvidence } from "./health/health-evidence.ts";
export { ObservedTime } from "./health/observed-time.ts";
export {
  type AgentKeys,
  afterAccepted,
  afterAnswer,
  afterNewKey,
  afterRefused,
  keysOnDisk,
  keyToUse,
  type RotationAnswer,
} from "./keys/agent-keys.ts";
export { keyOfferedEvent, keyRotatedEvent, keyRotationRequiredEvent } from "./keys/key-events.ts";
export {
  acceptKey,
  decideRotation,
  type KeyVerdict,
  type NodeIdentity,
  type RotationDecision,
  type RotationRequest,
} from "./keys/key-rotation.ts";
export { proofText } from "./keys/proof.ts";
export { PUBLIC_KEY_BYTES, type PublicKeyFlaw, publicKeyFlaw } from "./keys/public-key.ts";
export { matchesGlob } from "./labels/glob.ts";
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
} from "./labels/labels.ts";
export {
  MAX_SELECTOR_LENGTH,
  parseSelector,
  type SelectorParseResult,
} from "./labels/parse-selector.ts";
export {
  formatSelector,
  labelNumber,
  matches,
  type Requirement,
  type Selector,
} from "./labels/selectors.ts";
export { LEASE_TIMING, type LeaseDoubt, LeaseHolding, type LeaseTiming } from "./leases/lease-holding.ts";
export { OtherLeases } from "./leases/other-leases.ts";
export {
  ArrivalLimiter,
  type ArrivalLimits,
  type ArrivalVerdict,
} from "./limits/arrival-limiter.ts";
export { BucketTable } from "./limits/bucket-table.ts";
export {
  type CallLimits,
  type CallParty,
  CallPlaces,
  type CallRow,
  DEFAULT_CALL_LIMITS,
} from "./limits/call-places.ts";
export {
  addressGroup,
  clientAddress,
  type ForwardingHeaders,
  type HostJudgement,
  plainHost,
} from "./limits/client-address.ts";
export {
  type DescriptorNeeds,
  type DescriptorPlan,
  planDescriptors,
} from "./limits/descriptor-plan.ts";
export {
  FailureLimiter,
  type FailureLimiterOptions,
  NODE_FAILURE_LIMITS,
  TOKEN_FAILURE_LIMITS,
} from "./limits/failure-limiter.ts";
export { isRequestForUs } from "./limits/host-names.ts";
export {
  DEFAULT_NOISE_LIMITS,
  type NoiseLimits,
  type NoiseSummary,
  NoiseTable,
} from "./limits/noise-table.ts";
export { PAGE_BYTES, type PageLimits, PageRoom, splitBySize } from "./limits/page-room.ts";
export {
  DEFAULT_STRANGER_BUDGET,
  StrangerBudget,
  type StrangerBudgetLimits,
} from "./limits/stranger-budget.ts";
export { explainTlsError, type TlsOption, type TlsTrouble } from "./limits/tls-trouble.ts";
export {
  type BucketLimits,
  fillBucket,
  fullBucket,
  msUntilOne,
  type TokenBucket,
  takeOne,
} from "./limits/token-bucket.ts";
export type { AdmissionFacts, GivenJoinToken, JoiningToken } from "./membership/admission.ts";
export {
  BAN_LIFTED,
  type Ban,
  type BannedNames,
  bannedNamesOf,
  bannedRefusal,
  isBanned,
  isKeyFingerprint,
  MEMBERSHIP_BANNED,
  missingBans,
  type NewBan,
} from "./membership/ban.ts";
export { banInAdvance, isBareBan, liftBareBans } from "./membership/bare-bans.ts";
export {
  type CollectableNode,
  type CollectionReason,
  type CollectionSettings,
  collected,
  decideCollection,
} from "./membership/collection.ts";
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
} from "./membership/duplicate-identity.ts";
export {
  type AdmittingToken,
  clusterShortId,
  endJoinToken,
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
} from "./membership/join-token.ts";
export {
  changeMembership,
  decideMembership,
  type MembershipCommand,
  type MembershipDecision,
  type MembershipEffect,
  type MembershipOutcome,
  type MembershipSubject,
  membershipEffects,
  type NodeMember,
  nothingToLeave,
} from "./membership/membership.ts";
export {
  caselessId,
  checkNewId,
  checkNodeId,
  isIdBanned,
  isNodeId,
  NODE_ID_PATTERN,
  NODE_ID_RULE,
  type NodeRefResolution,
  resolveNodeRef,
} from "./membership/node-id.ts";
export {
  type Applicant,
  type KnownNode,
  type NodeApproval,
  type NodeCreation,
  planRegistrations,
  type RegistrationFacts,
  type RegistrationPlan,
  type RegistrationResult,
} from "./membership/plan-registrations.ts";
export {
  accountIssuerUnavailable,
  accountName,
  accountTokenInvalid,
  type GivenAccount,
  judgeAccount,
  type ServiceAccount,
} from "./membership/service-account.ts";
export { type OwnersView, type PlanCircumstances, planConditions } from "./nodes/condition-plan.ts";
export {
  admitControlPlane,
  type ConnectionChange,
  controlPlaneLost,
  controlPlaneOpened,
  expireControlPlane,
} from "./nodes/control-plane-node.ts";
export type {
  NodeEffect,
  NodeRefusalReason,
  NodeVerdict,
  Removal,
  SessionStates,
} from "./nodes/node-effects.ts";
export type { InfoReport, InfoSummary, JsonInfo, NodeJoining, NodeRecord } from "./nodes/node-record.ts";
export {
  acceptHardware,
  changeLabels,
  clearMark,
  cordon,
  endCordon,
  etagRefusal,
  markUnhealthy,
  requireKeyRotation,
  uncordon,
} from "./nodes/operator-decisions.ts";
export { type OpenedSession, type OpeningPlan, planOpening } from "./nodes/session-opening.ts";
export { shownHealth } from "./nodes/shown-health.ts";
export {
  planTransition,
  type RecordedSession,
  type StateChange,
  type Transition,
  type TransitionFacts,
  type TransitionPlan,
} from "./nodes/transition.ts";
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
} from "./policy/health-policies.ts";
export {
  checkPolicy,
  DEFAULT_HEALTH_POLICY,
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
} from "./policy/policy.ts";
export {
  changedPolicies,
  describeSource,
  isSamePolicy,
  newContradictions,
  type PolicyChange,
  type PolicyContradiction,
} from "./policy/policy-changes.ts";
export {
  contradictionRefusal,
  editPolicy,
  type PolicyEdit,
  type PolicyPart,
  policiesAfter,
  policyEtagRefusal,
  scopeOfEdit,
  tooManyPolicies,
} from "./policy/policy-edit.ts";
export {
  changePolicy,
  isSamePolicies,
  isSamePolicyEntry,
  policyDeletedEvent,
  policyFacts,
  policyFromFacts,
  policyOfEvent,
  policySetEvent,
} from "./policy/policy-events.ts";
export type { HealthPolicy } from "./policy/policy-fields.ts";
export {
  isPolicyField,
  POLICY_FIELD_NAMES,
  POLICY_FIELDS,
  type PolicyField,
} from "./policy/policy-fields.ts";
export {
  PolicyResolver,
  type PolicySource,
  type PolicySubject,
  type ResolvedPolicy,
  resolvePolicy,
} from "./policy/resolve-policy.ts";
export type { Refusal, RefusalReason } from "./refusal.ts";
export {
  chooseWithin,
  type RetryRange,
  rejectedRetry,
  spreadRetry,
} from "./retry.ts";
export { seededRandom } from "./seeded-random.ts";
export { adoptSession, mayHaveEarlierContact } from "./session/adoption.ts";
export { type ConnectionSignal, connectionAfter } from "./session/connection.ts";
export { HelloAdmission, type HelloVerdict } from "./session/hello-admission.ts";
export {
  heartbeatsPerSecond,
  mayAdmit,
  nextFactor,
  type PacedGroup,
  pacedIntervalMs,
  reconnectWindow,
  stretchFactor,
} from "./session/pacing.ts";
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
} from "./session/rebalance.ts";
export {
  type FrameKind,
  Session,
  type SessionEffect,
  type SessionPhase,
  type SessionRefusalReason,
} from "./session/session.ts";
export {
  DEFAULT_STREAM_LOSS_LIMITS,
  StreamLoss,
  type StreamLossLimits,
} from "./session/stream-loss.ts";
export {
  type CommandSource,
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
export * from "./webhooks/index.ts";
export * from "./work/index.ts";
export { chooseGrant } from "./work/placement/choose-grant.ts";
export { NodePool } from "./work/placement/node-pool.ts";
export { placementRequest } from "./work/placement/placement-request.ts";
export { PlacementSearch } from "./work/placement/placement-search.ts";
export { couldFit, countRefusals, matchingNodes } from "./work/placement/refusals.ts";
