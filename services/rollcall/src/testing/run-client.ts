import { runCli, type Shell, type Sink } from "@rollcall/cli";

/** What a command line left behind. */
export interface Outcome {
  readonly code: number;
  /** Standard output and standard error together. */
  readonly text: string;
}

/** Where services that run apart are. */
export interface ServicesApart {
  readonly addresses: Readonly<Record<"registry" | "health" | "admin", string>>;
  readonly tokenFile: string;
}

/** A shell of a test: nothing of this process's environment, and everything that is written is kept. */
interface TestShell extends Shell {
  /** What was written to standard output so far. */
  written(): string;
}

/** Run a verb of the command line in this process, against services that run apart. */
export async function runClient(line: string, { addresses, tokenFile }: ServicesApart): Promise<Outcome> {
  const shell = createTestShell({
    args: line.split(" "),
    env: {
      ROLLCALL_REGISTRY: addresses.registry,
      ROLLCALL_HEALTH: addresses.health,
      ROLLCALL_ADMIN: addresses.admin,
      ROLLCALL_TOKEN_FILE: tokenFile,
    },
  });
  const configuration = {
    list: async () => ({ settings: [], problems: [], warnings: [] }),
    defaultYaml: async () => "",
    convert: async () => ({ settings: [], leftAside: [], yaml: "" }),
  };
  const code = await runCli(shell, { verbs: [], configuration });
  return { code, text: shell.written() };
}

/** Make a shell with nothing but what is given. */
export function createTestShell(given: Partial<Shell> = {}): TestShell {
  let text = "";
  const out: Sink = {
    write: (more) => {
      text += more;
    },
    finish: async () => {},
    taken: async () => {},
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
