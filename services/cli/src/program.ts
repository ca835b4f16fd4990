import { Command } from "commander";
import { addAccessCommands } from "./commands/access-commands.ts";
import { addAuditCommands } from "./commands/audit-commands.ts";
import { addBrakeCommands } from "./commands/brake-commands.ts";
import { addCompletionCommands } from "./commands/completion-commands.ts";
import { addConfigCommands } from "./commands/config-commands.ts";
import { addContextCommands } from "./commands/context-commands.ts";
import { addEventCommands } from "./commands/event-commands.ts";
import { addNodeCommands } from "./commands/node-commands.ts";
import { addPolicyCommands } from "./commands/policy-commands.ts";
import { addStatusCommand } from "./commands/status-command.ts";
import { addTokenCommands } from "./commands/token-commands.ts";
import { addVersionCommand } from "./commands/version-command.ts";
import type { Parts } from "./parts.ts";
import type { Shell } from "./shell.ts";

const HELP = `
Where the control plane is, the nearest wins: --registry, --health, --admin (services deployed apart); --server; the context that --context
names; ROLLCALL_REGISTRY, ROLLCALL_HEALTH, ROLLCALL_ADMIN; ROLLCALL_SERVER; the context of ROLLCALL_CONTEXT, else the current one; what
\`rollcall up\` of the same user wrote to run.json in its data directory; 127.0.0.1:7700.

The access token: --token; --token-file; the context that --context names; ROLLCALL_TOKEN; ROLLCALL_TOKEN_FILE; the context of
ROLLCALL_CONTEXT, else the current one; admin-token in the data directory. A context's token is sent to the addresses of that context alone,
admin-token to this machine and to the server of run.json alone. \`rollcall login\` makes contexts.

TLS: https:// in the address, or HOST:PORT with any of --ca-file, --client-cert and --client-key, --tls-server-name; the same by
ROLLCALL_CA_FILE, ROLLCALL_CLIENT_CERT, ROLLCALL_CLIENT_KEY, ROLLCALL_TLS_SERVER_NAME; \`rollcall up\` tells its own user's clients by run.json.

The data directory: ROLLCALL_DATA_DIR; .rollcall in the working directory, if there is one that is yours; ~/.rollcall.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.`;

/** The whole command line as a tree of commands. Nothing that a verb needs is loaded before it is called. */
export function createProgram(shell: Shell, parts: Parts): Command {
  const program = new Command("rollcall")
    .description("Who is here, who is well, and who may take work: the control plane for fleets of machines.")
    .configureHelp({ showGlobalOptions: true })
    .helpCommand("help [command]", "show help")
    .option("--server <address>", "HOST:PORT or URL of the control plane")
    .option("--registry <address>", "the registry, when services are deployed apart")
    .option("--health <address>", "health's readers, when services are deployed apart")
    .option("--admin <address>", "admin, when services are deployed apart")
    .option("--context <name>", "one of the contexts that `rollcall context list` shows")
    .option("--token <token>", "access token; other users may see it in the list of processes")
    .option("--token-file <file>", "file that holds the access token")
    .option("--ca-file <file>", "authority of the server's TLS certificate, as PEM")
    .option("--client-cert <file>", "certificate to show to servers that ask for one, as PEM")
    .option("--client-key <file>", "its key, as PEM")
    .option("--tls-server-name <name>", "name that the server's certificate must be for")
    .option("--output <format>", "table, json, yaml or csv")
    .option("--timeout <duration>", "how long one call may take (default: 10s)")
    .option("--no-color", "no colours; NO_COLOR does the same")
    .addHelpText("after", HELP);
  for (const { name, usage, description } of parts.verbs) {
    // Listed for help and completion; their words are read by themselves, before commander sees them.
    program.command(`${name} ${usage}`.trim()).description(description).helpOption(false);
  }
  addNodeCommands(program, shell);
  addTokenCommands(program, shell);
  addPolicyCommands(program, shell);
  addBrakeCommands(program, shell);
  addEventCommands(program, shell);
  addAuditCommands(program, shell);
  addStatusCommand(program, shell);
  addConfigCommands(program, shell, parts);
  addAccessCommands(program, shell);
  addContextCommands(program, shell);
  addVersionCommand(program, shell);
  addCompletionCommands(program, shell);
  return program;
}
