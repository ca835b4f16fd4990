import { describeError, type ErrorDescription } from "@rollcall/runtime";

/** How a call that must be refused was refused. */
export async function refusalOf(call: Promise<unknown>): Promise<ErrorDescription> {
  const outcome = await call.then(
    (answer) => ({ answer }),
    (error: unknown) => ({ error }),
  );
  if ("error" in outcome) return describeError(outcome.error);
  throw new Error("the call was not refused");
}
