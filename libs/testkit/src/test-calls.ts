import type { Interceptor } from "@connectrpc/connect";
import { describeError, type ErrorDescription } from "@rollcall/errors";

/** Wait for a call that must be refused, and return its error. */
export async function refusalOf(call: Promise<unknown>): Promise<ErrorDescription> {
  const outcome = await call.then(
    (answer) => ({ answer }),
    (error: unknown) => ({ error }),
  );
  if ("error" in outcome) return describeError(outcome.error);
  throw new Error(`the call was not refused: ${JSON.stringify(outcome.answer, bigintsAsTexts)}`);
}

function bigintsAsTexts(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/** Send an access token with each call of a client. */
export function sendBearer(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
