import { runCli } from "@rollcall/cli";
import { createConfigurationView } from "./config/configuration-view.ts";
import { createProcessShell } from "./process-shell.ts";
import { type ServerVerb, toForeignVerb } from "./server-verb.ts";

/** Run the command line of this process, with the verbs of servers that this build has. */
export async function runProgram(process: NodeJS.Process, verbs: readonly ServerVerb[]): Promise<void> {
  const { shell, releaseSignals } = createProcessShell(process);
  const code = await runCli(shell, {
    verbs: verbs.map((verb) => toForeignVerb(verb, { shell, process, releaseSignals })),
    configuration: createConfigurationView(shell),
  });
  // Not process.exit(): what was written may still be on its way through a pipe.
  process.exitCode = code;
}
