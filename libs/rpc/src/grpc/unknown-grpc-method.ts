import type { Server, ServerDuplexStream } from "@grpc/grpc-js";
import { unknownMethod } from "../connect/answer-unknown-path.ts";
import { toGrpcStatus } from "./grpc-status.ts";

/** As grpc-js keeps a method. */
interface Handler {
  readonly type: "bidi";
  /** Names the call in the log and in metrics: one name for all, since callers choose the real ones. */
  readonly path: string;
  readonly func: (call: ServerDuplexStream<unknown, unknown>) => void;
  readonly serialize: (value: unknown) => Buffer;
  readonly deserialize: (bytes: Buffer) => unknown;
}

const PATH = "/unknown";
const NOTHING = Buffer.alloc(0);

/**
 * Answer calls of methods that a grpc-js server does not have with UNKNOWN_METHOD. By itself it answers without
 * details, and lets no interceptor see the call; it has no handler for all other methods, so its table of handlers is
 * made to have one.
 */
export function answerUnknownMethods(server: Server): void {
  const { handlers } = server as unknown as { readonly handlers: Map<string, unknown> };
  const known = handlers.get.bind(handlers);
  handlers.get = (path) => known(path) ?? unknownHandler(path);
}

function unknownHandler(path: string): Handler {
  return {
    type: "bidi",
    path: PATH,
    func: (call) => call.emit("error", toGrpcStatus(unknownMethod(path))),
    serialize: () => NOTHING,
    deserialize: () => null,
  };
}
