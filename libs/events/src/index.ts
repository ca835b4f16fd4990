export {
  type CloudEvent,
  type CloudEventData,
  encodeCloudEvent,
  type JsonValue,
  type OmittedMember,
  type OutwardEvent,
  toCloudEvent,
} from "./cloud-event.ts";
export {
  checkEventsConfig,
  EVENTS_KEYS,
  type EventsConfig,
  natsSettings,
  streamSettings,
} from "./config.ts";
export { connectNats, NatsLink, type NatsLinkOptions } from "./connect-nats.ts";
export { EventPublisher, type EventPublisherOptions } from "./event-publisher.ts";
export type { StreamSettings } from "./event-stream.ts";
export {
  HeartbeatTopic,
  type HeartbeatTopicOptions,
  type OutwardHeartbeat,
} from "./heartbeat-topic.ts";
export { exposePublishLag } from "./metrics.ts";
export type { NatsSettings, NatsTls } from "./nats-settings.ts";
export { NatsUrl, parseNatsUrl } from "./nats-url.ts";
export type { PublishOutcome, PublishSession } from "./publish-session.ts";
export { escapeToken, eventSubject, unescapeToken } from "./subjects.ts";
