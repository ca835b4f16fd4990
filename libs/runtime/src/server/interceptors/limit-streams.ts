import type { Interceptor } from "@connectrpc/connect";
import { actorOf, callerKey } from "../../auth.ts";
import { refuse } from "../../errors.ts";
import type { PolicyTable } from "../../policy.ts";
import { needsRole } from "../find-caller.ts";
import { methodName } from "../method-name.ts";
import { runToEnd } from "./call-end.ts";

/** Let each caller hold so many streams at a time, of all methods together. Who has no token has none that this counts. */
export function limitStreams(policies: PolicyTable, maxStreams: number): Interceptor {
  const open = new Map<string, number>();
  return (next) => async (request) => {
    const caller = policies[methodName(request.method)]?.caller ?? "anyone";
    if (!request.stream || !needsRole(caller)) return await next(request);
    const actor = actorOf(request.contextValues.get(callerKey));
    const held = open.get(actor) ?? 0;
    if (held >= maxStreams) throw tooManyStreams(actor, maxStreams);
    open.set(actor, held + 1);
    return await runToEnd(next, request, () => {
      const left = (open.get(actor) ?? 1) - 1;
      if (left === 0) open.delete(actor);
      else open.set(actor, left);
    });
  };
}

function tooManyStreams(actor: string, limit: number): Error {
  const message = `${actor} holds ${limit} streams already, which is as many as one caller may; end one first`;
  return refuse("TOO_MANY_STREAMS", message, { metadata: { actor, limit: String(limit) } });
}
