export { fullJitter } from "./backoff.ts";
export { type ConnectionSignal, connectionAfter } from "./connection.ts";
export { Detector, type Due, type Watch } from "./detector.ts";
export {
  EVENT_CATALOGUE,
  EVENT_TYPES,
  type EventDescription,
  formatEventCatalogue,
  isEventType,
} from "./event-catalogue.ts";
export {
  connectionEvent,
  type EventType,
  healthEvent,
  type Json,
  type MembershipEventType,
  membershipEvent,
  type NewEvent,
  schedulingEvent,
} from "./events.ts";
export { type HealthSignal, healthAfter } from "./health.ts";
export { type NewsOfNode, type NodeBeforeReport, nodeInfoEvents } from "./info-events.ts";
export {
  checkAgentLabels,
  type EffectiveLabel,
  effectiveLabels,
  isLabelKey,
  isLabelValue,
  type Label,
  type LabelTier,
  type LabelViolation,
  MAX_AGENT_LABELS,
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
export { ObservedTime } from "./observed-time.ts";
export { MAX_SELECTOR_LENGTH, parseSelector, type SelectorParseResult } from "./parse-selector.ts";
export {
  checkPolicy,
  DEFAULT_HEALTH_POLICY,
  type GroupPolicy,
  type HealthPolicy,
  type Intervals,
  intervalsFor,
  type PolicyOverride,
  type PolicySource,
  type ResolvedPolicy,
  resolvePolicy,
  type Thresholds,
  thresholdsOf,
} from "./policy.ts";
export { proofText } from "./proof.ts";
export type { Refusal, RefusalReason } from "./refusal.ts";
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
