import type { Interceptor } from "@connectrpc/connect";

/** Send an access token with each call of a client. */
export function sendBearer(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
