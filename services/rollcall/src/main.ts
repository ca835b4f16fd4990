import { runCli } from "@rollcall/cli";
import { createConfigurationView } from "./config/configuration-view.ts";
import { createProcessShell } from "./process-shell.ts";
import { createServerVerbs } from "./server-verbs.ts";

const { shell, releaseSignals } = createProcessShell(process);
const code = await runCli(shell, {
  verbs: createServerVerbs(shell, process, releaseSignals),
  configuration: createConfigurationView(shell),
});
// Not process.exit(): what was written may still be on its way through a pipe.
process.exitCode = code;
