import { runCli, type Shell, type Sink } from "@rollcall/cli";

/** The result of a command. */
export interface Outcome {
  readonly code: number;
  /** Standard output and standard error together. */
  readonly text: string;
}

/** The addresses of separate services. */
export interface ServicesApart {
  readonly addresses: Readonly<Record<"registry" | "health" | "admin", string>>;
  readonly tokenFile: string;
}

/** A shell for tests: it ignores this process's environment and keeps all output. */
interface TestShell extends Shell {
  /** The standard output so far. */
  written(): string;
}

/** Run a CLI verb in this process against separate services. */
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

/** Create a shell with only the given parts. */
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
