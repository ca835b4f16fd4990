/** A read that only somebody known may make. */
export const LIST_NODES = "/rollcall.registry.v1.RegistryService/ListNodes";
/** The agents' stream. */
export const HEARTBEAT = "/rollcall.health.v1.HealthService/Heartbeat";
/** What anybody may ask for. */
export const CREATE_CHALLENGE = "/rollcall.registry.v1.RegistryService/CreateChallenge";
