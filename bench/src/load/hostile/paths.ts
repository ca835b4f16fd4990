/** A read that only known callers may make. */
export const LIST_NODES = "/rollcall.registry.v1.RegistryService/ListNodes";
/** The agents' stream. */
export const HEARTBEAT = "/rollcall.health.v1.HealthService/Heartbeat";
/** A path that is open to anyone. */
export const CREATE_CHALLENGE = "/rollcall.registry.v1.RegistryService/CreateChallenge";
