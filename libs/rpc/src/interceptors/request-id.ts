import { randomUUID } from "node:crypto";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { requestIdKey } from "../calls/call-context.ts";

const HEADER = "x-request-id";
const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/;

/**
 * Give each call an id, and return it with the response or the error. If the caller sends an id, the call
 * keeps it.
 */
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
