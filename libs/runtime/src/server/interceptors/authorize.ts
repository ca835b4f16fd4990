import type { Interceptor } from "@connectrpc/connect";
import {
  ANONYMOUS,
  type Authenticator,
  bearerOf,
  type Caller,
  callerKey,
  roleSuffices,
} from "../../auth.ts";
import { refuse } from "../../errors.ts";
import type { MethodPolicy, PolicyTable } from "../../policy.ts";
import { methodName } from "../method-name.ts";
import { beforeAbort } from "./before-abort.ts";

/** Find out who calls, and let only those pass whom the method's policy row allows. */
export function authorize(policies: PolicyTable, authenticate: Authenticator): Interceptor {
  return (next) => async (request) => {
    const method = methodName(request.method);
    const policy = policies[method];
    if (policy === undefined) throw new Error(`${method} has no policy row`);
    const authorization = request.header.get("authorization");
    const caller = await callerFor(policy, authorization, (bearer) =>
      beforeAbort(authenticate(bearer), request.signal),
    );
    request.contextValues.set(callerKey, caller);
    return await next(request);
  };
}

async function callerFor(
  { caller: needs }: MethodPolicy,
  authorization: string | null,
  authenticate: Authenticator,
): Promise<Caller> {
  if (needs === "anyone" || needs === "node") return ANONYMOUS;
  if (authorization === null) {
    throw refuse(
      "TOKEN_MISSING",
      "this method needs an access token: send it as authorization: Bearer <token>",
    );
  }
  const bearer = bearerOf(authorization);
  const caller = bearer === null ? null : await authenticate(bearer);
  if (caller === null || caller.kind !== "token") {
    throw refuse("TOKEN_INVALID", "the access token is unknown or malformed");
  }
  if (!roleSuffices(caller.role, needs)) {
    throw refuse(
      "ROLE_TOO_LOW",
      `this method needs the role ${needs}, the token has ${caller.role}`,
      {
        metadata: { required: needs, role: caller.role },
      },
    );
  }
  return caller;
}
