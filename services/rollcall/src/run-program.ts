import { runCli } from "@rollcall/cli";
import { createConfigurationView } from "./config/configuration-view.ts";
import { createProcessShell } from "./process-shell.ts";
import { type ServerVerb, toForeignVerb } from "./server-verb.ts";

/** Run the command line of this process, with the server verbs of this build. */
export async function runProgram(process: NodeJS.Process, verbs: readonly ServerVerb[]): Promise<void> {
  const { shell, releaseSignals } = createProcessShell(process);
  const code = await runCli(shell, {
    verbs: verbs.map((verb) => toForeignVerb(verb, { shell, process, releaseSignals })),
    configuration: createConfigurationView(shell),
  });
  // Do not call process.exit(), because output may still be in a pipe.
  process.exitCode = code;
}
