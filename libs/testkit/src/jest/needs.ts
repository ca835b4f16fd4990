import { describe, it } from "@jest/globals";

/** Functions that define tests. On a machine that lacks something, they define skipped ones. */
export interface Needing {
  readonly describe: Pick<typeof describe, "each"> & ((name: string, tests: () => void) => void);
  readonly it: Pick<typeof it, "each"> & ((name: string, test: () => Promise<void> | void, limitMs?: number) => void);
}

/**
 * Define tests that need something from the machine. Where it is missing, the tests are skipped, and their names say
 * what they need. tally-reporter.cjs lists it at the end of a run.
 *
 * @param what what the tests need, for example "nats-server" or "to run as root"
 */
export function needs(what: string, isThere: boolean): Needing {
  if (isThere) return { describe, it };
  const named = (name: string) => `${name} (needs ${what})`;
  return { describe: skipped(describe.skip, named), it: skipped(it.skip, named) };
}

/** Define tests that need root. Only root can, for example, run an execution as another user. */
export function needsRoot(): Needing {
  return needs("to run as root", process.getuid?.() === 0);
}

// biome-ignore lint/suspicious/noExplicitAny: the parameters of jest's functions are passed on.
type Definition = ((name: string, body: any, ...rest: any[]) => void) & { each: any };

function skipped<T extends Definition>(skip: T, named: (name: string) => string): T {
  const one: Definition = Object.assign((name: string, ...rest: [unknown]) => skip(named(name), ...rest), {
    each: (table: unknown) => (name: string, body: unknown) => skip.each(table)(named(name), body),
  });
  return one as T;
}
