export {
  describeWithNats,
  startTestNats,
  type TestNats,
  type TestNatsOptions,
} from "./nats-server.ts";
export { distinctRevisions, type ReadMessage, readStoredEvents } from "./read-stream.ts";
