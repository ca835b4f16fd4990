export { eventually } from "./eventually.ts";
export {
  type AgentFrame,
  FakeAgent,
  type FakeAgentOptions,
  FakeAgents,
  FakeStream,
  HEARTBEAT_METHOD,
  type ServerFrameCase,
  type StreamEnd,
} from "./fake-agent.ts";
export { ManualClock } from "./manual-clock.ts";
export { createTestDatabase, type TestDatabase } from "./test-database.ts";
export { addNode, type TestNodeOptions } from "./test-nodes.ts";
export { startTestPostgres, type TestPostgres } from "./test-postgres.ts";
