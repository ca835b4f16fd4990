export { type Agent, type AgentOptions, createAgent } from "./agent.ts";
export type { AgentPhase, AgentStatus } from "./agent-status.ts";
export { type AgentConfig, agentKeys, checkAgentConfig } from "./config.ts";
export {
  defaultStateDirectory,
  type RunningAgent,
  type StartAgentOptions,
  startAgent,
} from "./start-agent.ts";
export type { KeeperAccess } from "./work/keeper-link.ts";
export { checkWorkConfig, type WorkConfig, workKeys } from "./work/work-keys.ts";
