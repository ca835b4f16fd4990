export { createApp, type HealthApp } from "./app.ts";
export { agentEndpointOf, checkHealthConfig, HEALTH_KEYS, type HealthConfig, policyOf } from "./config.ts";
export type { HealthProcess } from "./health-process.ts";
export type { Endpoints } from "./internal/advertise.ts";
export { createQueryApp } from "./query-app.ts";
export { type AuthorityFeed, followAuthorities } from "./session/announced-authorities.ts";
