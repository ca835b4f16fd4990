import type { Command } from "commander";
import type { Parts } from "../parts.ts";
import type { Shell } from "../shell.ts";
import type { ConfigListOptions } from "../verbs/config-list.ts";
import { lazily } from "./lazily.ts";

/** Add `config` and its verbs. */
export function addConfigCommands(program: Command, shell: Shell, parts: Parts): void {
  const config = program.command("config").description("see the configuration");
  config
    .command("list")
    .description("list every key with its value and where the value comes from")
    .option("--config <file>", "the configuration file (default: ROLLCALL_CONFIG)")
    .option("--wide", "do not cut long values short; aliases and environment variables too")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      '\n--output json|yaml prints a list of {"key", "value", "default", "source", "alias", "aliases", "environment", "flag", "description"}.',
    )
    .action(
      lazily<ConfigListOptions>(shell, async () =>
        (await import("../verbs/config-list.ts")).configList(parts.configuration),
      ),
    );
  config
    .command("default")
    .description("print a configuration file with every key at its default, explained")
    .action(
      lazily(shell, async () => async () => {
        shell.out.write(await parts.configuration.defaultYaml());
      }),
    );
}
