import { Command } from "commander";
import { action } from "../command.ts";
import { columnsOf } from "../output/style.ts";
import { wrap } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { addGlobalOptions, HELP_COLUMNS } from "./global-options.ts";

/** Where addresses, tokens and other settings of all commands come from. */
export const NOTES = [
  "The address of the control plane, in order of precedence: --registry, --health, --admin, --scheduler (services " +
    "deployed separately); --server; the context that --context names; ROLLCALL_REGISTRY, ROLLCALL_HEALTH, " +
    "ROLLCALL_ADMIN, ROLLCALL_SCHEDULER; " +
    "ROLLCALL_SERVER; the context of ROLLCALL_CONTEXT, else the current one; run.json in the data directory, " +
    "written by `rollcall up` of the same user; 127.0.0.1:7700.",
  "The access token, in order of precedence: --token; --token-file; the context that --context names; " +
    "ROLLCALL_TOKEN; ROLLCALL_TOKEN_FILE; the context of ROLLCALL_CONTEXT, else the current one; admin-token in the " +
    "data directory. A context's token is sent only to the addresses of that context, admin-token only to this " +
    "machine and to the server of run.json. `rollcall login` creates contexts.",
  "TLS: https:// in the address, or HOST:PORT with any of --ca-file, --client-cert and --client-key, " +
    "--tls-server-name; the environment variables are ROLLCALL_CA_FILE, ROLLCALL_CLIENT_CERT, ROLLCALL_CLIENT_KEY, " +
    "ROLLCALL_TLS_SERVER_NAME. Clients of `rollcall up` read these settings from run.json.",
  "The data directory: ROLLCALL_DATA_DIR; .rollcall in the working directory, if you own it; " +
    "~/.rollcall; for root without a ~/.rollcall, /var/lib/rollcall.",
  "Tables fit the terminal, or COLUMNS: the least important columns are left out; -o wide prints all of them. " +
    "Without a terminal, tables are as wide as needed.",
] as const;

/** Define `rollcall options`. */
export function defineOptions(command: Command, shell: Shell): void {
  command.action(
    action(shell, async () => {
      const program = addGlobalOptions(new Command("rollcall"), shell);
      const help = program.createHelp();
      help.helpWidth = columnsOf(shell) || HELP_COLUMNS;
      const width = Math.max(...program.options.map(({ flags }) => flags.length));
      const lines = program.options.map((option) =>
        help.formatItem(option.flags, width, help.optionDescription(option), help),
      );
      const notes = NOTES.map((note) => wrap(note, columnsOf(shell) || HELP_COLUMNS));
      shell.out.write(`Options of all commands:\n${lines.join("\n")}\n\n${notes.join("\n\n")}\n`);
    }),
  );
}
