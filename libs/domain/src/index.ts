export {
  type AccessTokenState,
  accessTokenCreated,
  accessTokenState,
  anonymousTokenRefusal,
  endAccessToken,
  type Revoker,
} from "./access/access-token.ts";
export {
  type AuditHead,
  type AuditLink,
  type AuditPiece,
  type AuditProblem,
  type AuditProblemKind,
  type AuditResult,
  evaluateAuditPiece,
  evaluateExpectedHead,
} from "./access/audit-chain.ts";
export { groupsLeftOutText } from "./access/groups-left-out.ts";
export * from "./brake/index.ts";
export { suggestName } from "./closest-name.ts";
export * from "./conditions/index.ts";
export { checkBrowserOrigin } from "./console/browser-origin.ts";
export { fromSessionRefusal, moreCodesRefusal, SIGN_IN_LIMITS, signInCodeRefusal } from "./console/sign-in.ts";
export type { Decided } from "./decided.ts";
export * from "./declared/index.ts";
export {
  type DrainConditions,
  type DrainIntent,
  type DrainRequest,
  drainStartedEvent,
  drainWaitText,
  MAX_DRAIN_DEADLINE_MS,
} from "./drains/drain.ts";
export { cancelDrain, drainNode, drainsThatBegin, endDrain, type SelectedDrain } from "./drains/drain-decisions.ts";
export {
  connectionEvent,
  type EventType,
  healthEvent,
  type JobEventType,
  type Json,
  type NewEvent,
  replicaActor,
  schedulingEvent,
  sessionMovedEvent,
} from "./events/events.ts";
export {
  type ExecutionFacts,
  executionEvent,
  executionOrderedEvent,
  executionsOrphanedEvent,
  executionsPlacedEvents,
  type JobChangeReason,
  type JobFacts,
  jobChangedEvent,
  jobDeletedEvent,
  jobSubmittedEvent,
  schedulerActor,
} from "./events/job-events.ts";
export { apiNames, describeChange } from "./explain/describe-change.ts";
export { EVENT_CATALOGUE, EVENT_TYPES, isEventType } from "./explain/event-catalogue.ts";
export {
  EVERY_EVENT,
  type EventEffect,
  type EventInterest,
  effectOf,
  isNodeChange,
  isOfInterest,
  mayEndWanted,
  NO_EVENT,
  NODE_CHANGES,
  replicaInterest,
  SESSION_EVENTS,
  unitedInterest,
} from "./explain/event-meaning.ts";
export { eventSentence, explainEvent, inPlural } from "./explain/event-sentence.ts";
export { holdEnds, mayTakeWork, type Obstacle, obstaclesOf, summarizeNode } from "./explain/explain-node.ts";
export { Detector, type Due, type Timing } from "./health/detector.ts";
export { FLAPPING_OUTAGES, type Outage, type OutageHistory } from "./health/flapping.ts";
export { healthAfter } from "./health/health.ts";
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
export { keyOfferedEvent, keyRotatedEvent } from "./keys/key-events.ts";
export { acceptKey, decideRotation, type NodeIdentity } from "./keys/key-rotation.ts";
export { proofText } from "./keys/proof.ts";
export { PUBLIC_KEY_BYTES, type PublicKeyFlaw, publicKeyFlaw } from "./keys/public-key.ts";
export { matchesGlob } from "./labels/glob.ts";
export {
  checkAgentLabels,
  checkLabelChange,
  effectiveLabels,
  GROUP_LABEL,
  isLabelKey,
  isLabelValue,
  type Label,
  type LabelChange,
  type LabelTier,
  type LabelViolation,
  MAX_AGENT_LABELS,
  RESERVED_LABEL_PREFIX,
} from "./labels/labels.ts";
export { parseSelector } from "./labels/parse-selector.ts";
export { formatSelector, matches, type Requirement, type Selector } from "./labels/selectors.ts";
export { LEASE_TIMING, type LeaseDoubt, LeaseHolding, type LeaseTiming } from "./leases/lease-holding.ts";
export { OtherLeases } from "./leases/other-leases.ts";
export { AnonymousBudget, DEFAULT_ANONYMOUS_BUDGET } from "./limits/anonymous-budget.ts";
export { ArrivalLimiter } from "./limits/arrival-limiter.ts";
export { BucketTable } from "./limits/bucket-table.ts";
export { type CallLimits, type CallParty, CallPlaces, DEFAULT_CALL_LIMITS } from "./limits/call-places.ts";
export { clientAddress, type ForwardingHeaders, type HostKind, plainHost } from "./limits/client-address.ts";
export { type DescriptorPlan, planDescriptors } from "./limits/descriptor-plan.ts";
export { FailureLimiter, NODE_FAILURE_LIMITS, TOKEN_FAILURE_LIMITS } from "./limits/failure-limiter.ts";
export { isRequestForUs } from "./limits/host-names.ts";
export { NoiseTable } from "./limits/noise-table.ts";
export { PAGE_BYTES, PageRoom, splitBySize } from "./limits/page-room.ts";
export { explainTlsError, type TlsOption } from "./limits/tls-trouble.ts";
export type { BucketLimits } from "./limits/token-bucket.ts";
export type { GivenJoinToken } from "./membership/admission.ts";
export { type AgentPackage, isPackageFor, PACKAGE_PLATFORMS, parseAgentPackages } from "./membership/agent-packages.ts";
export {
  BAN_LIFTED,
  type Ban,
  bannedNamesOf,
  bannedRefusal,
  isBanned,
  isKeyFingerprint,
  type NewBan,
} from "./membership/ban.ts";
export { banInAdvance, isBareBan, liftBareBans } from "./membership/bare-bans.ts";
export {
  type CollectionReason,
  type CollectionSettings,
  collected,
  decideCollection,
} from "./membership/collection.ts";
export {
  type AgentSighting,
  ALTERNATION_WINDOW_MS,
  identityClearedEvent,
  isDuplicateOver,
  isSameAgent,
  latestPair,
  MOST_SIGHTINGS,
} from "./membership/duplicate-identity.ts";
export {
  clusterShortId,
  endJoinToken,
  type JoinTokenEnforcement,
  type JoinTokenState,
  joinTokenEvent,
  joinTokenState,
  joinTokenText,
  type PresentedJoinToken,
  parseJoinToken,
  presentedRefusal,
} from "./membership/join-token.ts";
export {
  banNode,
  changeMembership,
  decideMembership,
  type MembershipCommand,
  membershipEffects,
  nothingToLeave,
  unbanNode,
} from "./membership/membership.ts";
export { membershipEvent } from "./membership/membership-events.ts";
export {
  caselessId,
  checkNodeId,
  isNodeId,
  NODE_ID_PATTERN,
  NODE_ID_RULE,
  resolveNodeRef,
} from "./membership/node-id.ts";
export {
  type Applicant,
  type NodeApproval,
  type NodeCreation,
  planRegistrations,
  type RegistrationPlan,
  type RegistrationResult,
} from "./membership/plan-registrations.ts";
export {
  accountIssuerUnavailable,
  accountName,
  accountTokenInvalid,
  evaluateAccount,
  type GivenAccount,
  type ServiceAccount,
} from "./membership/service-account.ts";
export { type OwnersView, planConditions } from "./nodes/condition-plan.ts";
export {
  admitControlPlane,
  type ConnectionChange,
  controlPlaneLost,
  controlPlaneOpened,
  expireControlPlane,
} from "./nodes/control-plane-node.ts";
export type { InfoReport, InfoSummary, JsonInfo, Node, NodeJoining } from "./nodes/node.ts";
export type { NodeDecision, NodeEffect, Removal, SessionStates } from "./nodes/node-effects.ts";
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
export { type OpenedSession, type OpeningPlan, planOpening, type SuspectedReboot } from "./nodes/session-opening.ts";
export { shownHealth } from "./nodes/shown-health.ts";
export { planTransition, type StateChange, type StoredSession, type Transition } from "./nodes/transition.ts";
export {
  collectPolicies,
  describePolicyScope,
  formatPolicyScope,
  type HealthPolicies,
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
export { changedPolicies, isSamePolicy, newContradictions, type PolicyChange } from "./policy/policy-changes.ts";
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
  policyDeletedEvent,
  policyFacts,
  policyFromFacts,
  policyOfEvent,
  policySetEvent,
} from "./policy/policy-events.ts";
export type { HealthPolicy } from "./policy/policy-fields.ts";
export { POLICY_FIELD_NAMES, POLICY_FIELDS, type PolicyField } from "./policy/policy-fields.ts";
export {
  PolicyResolver,
  type PolicySource,
  type PolicySubject,
  type ResolvedPolicy,
} from "./policy/resolve-policy.ts";
export {
  formatPostgresHost,
  POSTGRES_URL_EXAMPLE,
  type PostgresHost,
  type PostgresTls,
  type PostgresUrl,
  parsePostgresUrl,
  postgresPlace,
} from "./postgres/postgres-url.ts";
export type { Refusal } from "./refusal.ts";
export { chooseWithin, rejectedRetry, spreadRetry } from "./retry.ts";
export { seededRandom } from "./seeded-random.ts";
export { adoptSession, mayHaveEarlierContact } from "./session/adoption.ts";
export { connectionAfter } from "./session/connection.ts";
export { HelloAdmission } from "./session/hello-admission.ts";
export {
  heartbeatsPerSecond,
  mayAdmit,
  nextFactor,
  type PacedGroup,
  pacedIntervalMs,
  reconnectWindow,
} from "./session/pacing.ts";
export {
  chooseTarget,
  DEFAULT_REBALANCE_LIMITS,
  type MovePlan,
  planMoves,
  type RebalanceLimits,
} from "./session/rebalance.ts";
export { type FrameKind, Session, type SessionEffect, type SessionPhase } from "./session/session.ts";
export { DEFAULT_STREAM_LOSS_LIMITS, StreamLoss } from "./session/stream-loss.ts";
export { reasonText, stateWords } from "./state-words.ts";
export {
  type CommandSource,
  type Connection,
  type ConnectionState,
  deriveScheduling,
  type Health,
  type HealthState,
  type Hold,
  type HoldKind,
  hasStatus,
  type Mark,
  type Membership,
  type MembershipState,
  type NodeType,
  type Scheduling,
  type SchedulingState,
  type Stated,
} from "./states.ts";
export {
  type AnnouncedAuthority,
  type AuthorityDecision,
  decideAuthorities,
} from "./trust/announced-authorities.ts";
export { repairOfDistrust } from "./trust/distrust.ts";
export * from "./webhooks/index.ts";
export * from "./work/index.ts";
export { placementRequest } from "./work/placement/placement-request.ts";
export { couldFit, countRefusals, matchingNodes } from "./work/placement/refusals.ts";
