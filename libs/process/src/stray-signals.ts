/**
 * Signals that would end a process although nobody sends them to end it. SIGUSR1 is one of them: Node.js opens its
 * debugger when it gets one.
 */
export const STRAY_SIGNALS = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGIO", "SIGPWR", "SIGSTKFLT"] as const;

/** What surviveStraySignals() needs of Node's `process`. */
interface SignalSource {
  on(event: string, listener: () => void): unknown;
}

/**
 * Ignore stray signals, and SIGHUP unless there is a terminal, before runProcess() listens: a supervisor can send them
 * at any time.
 */
export function surviveStraySignals(process: SignalSource, hasTerminal: boolean): void {
  for (const signal of hasTerminal ? STRAY_SIGNALS : ["SIGHUP", ...STRAY_SIGNALS]) process.on(signal, () => {});
}
