import { Exit, Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";

/**
 * Wait until all output is written, at the end of a successful verb whose exit code 1 has another meaning. Throws Exit
 * with `code` if output cannot be written. Such a failure may become known only at the end.
 */
export async function finishOutput({ out, err }: Pick<Shell, "out" | "err">, code: number): Promise<void> {
  try {
    await out.finish();
    await err.finish();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // Leave the message empty, because runCli reports output that could not be written.
    throw new Exit(code, "", { cause: error });
  }
}
