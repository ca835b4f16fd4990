export {
  afterCompaction,
  afterFailure,
  afterRecovery,
  type BlockedSubject,
  type CompactedPlace,
  type DeliveryTerms,
  dueSubjects,
  type FailedDelivery,
  MOST_BLOCKED_SUBJECTS,
  type Moment,
  nextDueAtMs,
  overdueSubject,
} from "./backlog.ts";
export { type Attempt, type DeliveryOutcome, evaluateAttempt } from "./delivery-outcome.ts";
export { evaluateAddress } from "./evaluate-address.ts";
export { isInNetwork, type Network, networkProblem, parseIpAddress, parseNetwork, readNetwork } from "./network.ts";
export { type EventSelection, selectsEvent } from "./selects-event.ts";
export {
  checkWebhookSpec,
  isAlreadySet,
  MOST_WEBHOOKS,
  type PauseReason,
  refusedUrl,
  type UrlParts,
  type WebhookFacts,
  type WebhookSpec,
  webhookBehindEvent,
  webhookDeletedEvent,
  webhookPausedEvent,
  webhookReplayedEvent,
  webhookSetEvent,
} from "./webhook.ts";
