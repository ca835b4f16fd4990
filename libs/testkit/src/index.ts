export { seededRandom } from "@rollcall/domain";
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
export { createGate, type Gate } from "./gate.ts";
export { refusalOf } from "./refusal-of.ts";
export { SteadyAgent, type SteadyAgentOptions } from "./steady-agent.ts";
export { createTestDatabase, type TestDatabase } from "./test-database.ts";
export { addNode, type TestNodeOptions, testFingerprint } from "./test-nodes.ts";
export { startTestPostgres, type TestPostgres } from "./test-postgres.ts";
export { eventually, ManualClock, settle, until } from "./time.ts";
