// What the package exports both in Node and in browsers.
export { Code } from "@connectrpc/connect";
export { ApiClient, type CallingOptions, type ServiceName } from "./client.ts";
export {
  ConfigurationError,
  type FieldViolation,
  OverloadedError,
  RefusedError,
  RollcallError,
  TimedOutError,
  UnreachableError,
} from "./errors.ts";
export { EventWatch, type EventWatchOptions } from "./event-watch.ts";
export type { CallSettings, MethodsOf } from "./methods.ts";
export { NodeCache, type NodeCacheOptions } from "./node-cache.ts";
export { type NodeChange, NodeView } from "./node-view.ts";
export { Reason } from "./reasons.ts";
export { DEFAULT_RETRY, type RetryPolicy } from "./retry.ts";
export { Services } from "./services.ts";
