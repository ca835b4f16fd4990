/**
 * Signals that end a process by default, although their senders do not intend that. SIGUSR1 would also make Node.js
 * open its debugger.
 */
export const STRAY_SIGNALS = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO", "SIGPWR", "SIGSTKFLT"] as const;

/** The part of Node's `process` that surviveStraySignals() uses. */
interface SignalSource {
  on(event: string, listener: () => void): unknown;
}

/**
 * Ignore stray signals, and SIGHUP unless there is a terminal. Called before runProcess() listens, because a
 * supervisor can send them at any time.
 */
export function surviveStraySignals(process: SignalSource, hasTerminal: boolean): void {
  for (const signal of hasTerminal ? STRAY_SIGNALS : ["SIGHUP", ...STRAY_SIGNALS]) process.on(signal, () => {});
}
