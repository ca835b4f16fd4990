import { isatty } from "node:tty";

/**
 * Whether this process reads from or writes to a terminal, so that SIGHUP means that the terminal was closed.
 */
export function hasTerminal(): boolean {
  return [0, 1, 2].some((descriptor) => isatty(descriptor));
}
