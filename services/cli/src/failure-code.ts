import { Exit, failureText, UsageError } from "./failure.ts";
import type { Verb } from "./invocation.ts";
import { finishOutput } from "./output/finish-output.ts";

/**
 * Wrap a verb whose exit code 1 is a result, such as "something differs". Any error that prevents a result exits with
 * `code`, and so does output that cannot be written after a success. Wrong usage stays 2.
 */
export function withFailureCode<Options>(code: number, verb: Verb<Options>): Verb<Options> {
  return async (invocation) => {
    try {
      await verb(invocation);
    } catch (error) {
      if (error instanceof Exit || error instanceof UsageError) throw error;
      throw new Exit(code, failureText(error), { cause: error });
    }
    await finishOutput(invocation.shell, code);
  };
}
