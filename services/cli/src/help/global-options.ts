import type { Command } from "commander";
import { columnsOf } from "../output/style.ts";
import type { Shell } from "../shell.ts";
import { HELP_LAYOUT } from "./format-help.ts";

/** The width of help without a terminal, in columns. */
export const HELP_COLUMNS = 80;

/** Add the options of all commands to the program. */
export function addGlobalOptions(program: Command, { out, err, env }: Pick<Shell, "out" | "err" | "env">): Command {
  return program
    .exitOverride()
    .configureOutput({
      writeOut: (text) => out.write(text),
      writeErr: (text) => err.write(text),
      // runCli reports errors.
      outputError: () => {},
      getOutHelpWidth: () => columnsOf({ out, env }) || HELP_COLUMNS,
      getErrHelpWidth: () => columnsOf({ out: err, env }) || HELP_COLUMNS,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp(HELP_LAYOUT)
    .option("--server <address>", "HOST:PORT or URL of the control plane")
    .option("--registry <address>", "Address of the registry, when services are deployed separately")
    .option("--health <address>", "Address of the health service's read API, when services are deployed separately")
    .option("--admin <address>", "Address of the admin service, when services are deployed separately")
    .option("--scheduler <address>", "Address of the scheduler, when services are deployed separately")
    .option("--context <name>", "Context to use; see `rollcall context list`")
    .option("--token <token>", "Access token; visible to other users in the list of processes")
    .option("--token-file <file>", "File that contains the access token")
    .option("--ca-file <file>", "Authority of the server's TLS certificate, as PEM")
    .option("--client-cert <file>", "Client certificate for servers that ask for one, as PEM")
    .option("--client-key <file>", "Key of the client certificate, as PEM")
    .option("--tls-server-name <name>", "Name to expect in the server's certificate")
    .option("-o, --output <format>", "table, wide, name, json, yaml or csv; not every command supports all of them")
    .option("--timeout <duration>", "Timeout of each call (default: 10s)")
    .option("--no-color", "Disable colours; NO_COLOR does the same");
}
