import { Failure, parseDurationMs } from "../failure.ts";
import type { GlobalOptions } from "../invocation.ts";
import type { Shell } from "../shell.ts";

/**
 * Run a verb that waits. For such a verb, --timeout limits the whole wait, not each call; by default it has
 * no limit. `stateText` describes what the verb was waiting for, for the Failure that is thrown when the
 * time is over.
 */
export async function withTimeLimit<Options extends GlobalOptions>(
  shell: Shell,
  options: Options,
  run: (shell: Shell, options: Options) => Promise<void>,
  stateText: () => string,
): Promise<void> {
  const { timeout, ...others } = options;
  // The cast is safe, because only the optional `timeout` is missing. Each call keeps the default limit.
  const waiting = others as Options;
  if (timeout === undefined) return run(shell, waiting);
  const limitMs = parseDurationMs("timeout", timeout);
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), limitMs);
  try {
    await run({ ...shell, interrupted: AbortSignal.any([limit.signal, shell.interrupted]) }, waiting);
  } catch (error) {
    if (!limit.signal.aborted || shell.interrupted.aborted) throw error;
    throw new Failure(`timed out after ${timeout}: ${stateText()}`);
  } finally {
    clearTimeout(timer);
  }
}
