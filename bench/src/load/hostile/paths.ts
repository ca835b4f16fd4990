/** A method that requires a role. */
export const LIST_NODES = "/rollcall.registry.v1.RegistryService/ListNodes";
/** The path of an agent's stream. */
export const HEARTBEAT = "/rollcall.health.v1.HealthService/Heartbeat";
/** A method that anonymous clients can call. */
export const CREATE_CHALLENGE = "/rollcall.registry.v1.RegistryService/CreateChallenge";
