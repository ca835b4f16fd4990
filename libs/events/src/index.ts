export { type CloudEvent, encodeCloudEvent, type JsonValue, type OutwardEvent } from "./cloud-event.ts";
export { checkEventsConfig, EVENTS_KEYS, type EventsConfig, natsSettings, streamSettings } from "./config.ts";
export { connectNats, NatsLink } from "./connect-nats.ts";
export { EventPublisher } from "./event-publisher.ts";
export { HeartbeatTopic } from "./heartbeat-topic.ts";
export { exposePublishLag } from "./metrics.ts";
export type { PublishSession } from "./publish-session.ts";
