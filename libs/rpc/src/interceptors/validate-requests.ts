import type { DescMessage } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { RequestValidator } from "../calls/request-validator.ts";

/** Check each message of a call before its handler sees it. */
export function validateRequests(validator: RequestValidator): Interceptor {
  return (next) => async (request) => {
    if (request.stream) {
      return await next({
        ...request,
        message: checked(request.message, request.method.input, validator),
      });
    }
    validator.check(request.method.input, request.message);
    return await next(request);
  };
}

async function* checked<T extends Parameters<RequestValidator["check"]>[1]>(
  messages: AsyncIterable<T>,
  desc: DescMessage,
  validator: RequestValidator,
) {
  for await (const message of messages) {
    validator.check(desc, message);
    yield message;
  }
}
