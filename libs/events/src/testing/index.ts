export {
  describeWithNats,
  startTestNats,
  type TestNats,
  type TestNatsOptions,
} from "./nats-server.ts";
export { distinctRevisions, type ReadMessage, readEventRows } from "./read-stream.ts";
