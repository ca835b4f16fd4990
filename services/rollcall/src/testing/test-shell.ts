import type { Shell, Sink } from "@rollcall/cli";

/** A shell of a test: nothing of this process's environment, and everything that is written is kept. */
export interface TestShell extends Shell {
  /** What was written to standard output so far. */
  written(): string;
}

/** Make a shell with nothing but what is given. */
export function createTestShell(given: Partial<Shell> = {}): TestShell {
  let text = "";
  const out: Sink = {
    write: (more) => {
      text += more;
    },
    isTerminal: false,
    columns: () => 0,
    rows: () => 0,
  };
  return {
    args: [],
    env: {},
    cwd: "/",
    home: "/nowhere",
    userId: null,
    runsOn: { node: process.versions.node, platform: process.platform },
    out,
    err: out,
    ask: null,
    wallMs: () => Date.now(),
    interrupted: new AbortController().signal,
    ...given,
    written: () => text,
  };
}
