import { Exit, Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";

/**
 * Wait until all output is written, at the end of a verb that has succeeded and whose exit code 1 means something else.
 * Throws Exit with `code` where it cannot be written: some failures show only now.
 */
export async function finishOutput({ out, err }: Pick<Shell, "out" | "err">, code: number): Promise<void> {
  try {
    await out.finish();
    await err.finish();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // Without a message: the end of every command reports what output could not be written.
    throw new Exit(code, "", { cause: error });
  }
}
