export { seededRandom } from "@rollcall/domain";
export { FakeAgent, type FakeAgentOptions, FakeAgents, type FakeLife } from "./fake-agent.ts";
export { type AgentFrame, FakeStream, HEARTBEAT_METHOD, type ServerFrameCase, type StreamEnd } from "./fake-stream.ts";
export { createGate, type Gate } from "./gate.ts";
export { refusalOf } from "./refusal-of.ts";
export { createTestDatabase, type TestDatabase } from "./test-database.ts";
export { addNode, type TestNodeOptions, testFingerprint } from "./test-nodes.ts";
export { startTestPostgres, type TestPostgres } from "./test-postgres.ts";
export { eventually, ManualClock, settle, until } from "./time.ts";
