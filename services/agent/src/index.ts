export { type Agent, createAgent } from "./agent.ts";
export { withTlsOfUp } from "./agent-tls.ts";
export { type AgentConfig, agentKeys, checkAgentConfig } from "./config.ts";
export { defaultStateDirectory, startAgent } from "./start-agent.ts";
export type { KeeperAccess } from "./work/keeper-link.ts";
export { checkWorkConfig, parseSecretGrants, parseUserIds, type WorkConfig, workKeys } from "./work/work-keys.ts";
