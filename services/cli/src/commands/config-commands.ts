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
    .command("convert")
    .argument("<file>", "the file to convert")
    .description("print what a configuration file of Bacalhau or KohakuRiver says in Rollcall's keys")
    .addHelpText(
      "after",
      `
The file is read as YAML, or as Python when its name ends in .py: plain values alone, nothing is run. Older names of Rollcall's keys are converted as well.
What means nothing here stands in comments at the end of the YAML. Secrets are printed as they are in the file.
--output json prints {"settings": [{"key", "value", "source", "alias", "note"}], "leftAside": [{"key", "source", "why"}]}.
Exit codes: 0 when it was converted, 1 when the file cannot be read or holds what neither program knows, 2 for wrong usage.`,
    )
    .action(lazily(shell, async () => (await import("../verbs/config-convert.ts")).configConvert(parts.configuration)));
  config
    .command("default")
    .description("print a configuration file with every key at its default, explained")
    .action(
      lazily(shell, async () => async () => {
        shell.out.write(await parts.configuration.defaultYaml());
      }),
    );
}
