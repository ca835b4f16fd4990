import { runCli } from "@rollcall/cli";
import { createTestShell } from "./test-shell.ts";

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
