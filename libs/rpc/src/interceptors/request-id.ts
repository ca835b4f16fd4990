import { randomUUID } from "node:crypto";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { requestIdKey } from "../calls/call-context.ts";

const HEADER = "x-request-id";
const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/;

/** Give each call an id, the caller's own where it sends one, and send it back with the answer or the error. */
export const requestId: Interceptor = (next) => async (request) => {
  const given = request.header.get(HEADER);
  const id = given !== null && ACCEPTABLE.test(given) ? given : randomUUID();
  request.contextValues.set(requestIdKey, id);
  try {
    const response = await next(request);
    response.header.set(HEADER, id);
    return response;
  } catch (error) {
    if (error instanceof ConnectError) error.metadata.set(HEADER, id);
    throw error;
  }
};
