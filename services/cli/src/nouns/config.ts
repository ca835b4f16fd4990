import type { Command } from "commander";
import { action, addListingOptions, addNotes } from "../command.ts";
import { Failure } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat, writePlain } from "../output/format.ts";
import { type ListingOptions, onePage, printListing } from "../output/listing.ts";
import { type Column, optionalCell } from "../output/table.ts";
import type { ConfigurationView, ListedSetting, Parts } from "../parts.ts";
import type { Shell } from "../shell.ts";

/** Define the verbs of `config`. */
export function defineConfig(config: Command, shell: Shell, { configuration }: Parts): void {
  const list = config
    .command("list")
    .description("List every key with its value and where the value comes from")
    .option("--config <file>", "Configuration file (default: ROLLCALL_CONFIG)")
    .action(action(shell, configList(configuration)));
  addNotes(
    addListingOptions(list),
    '-o json|yaml prints a list of {"key", "value", "default", "source", "alias", "aliases", "environment", ' +
      '"flag", "description"}.',
  );
  const convert = config
    .command("convert")
    .argument("<file>", "File to convert")
    .description("Convert a configuration file of Bacalhau or KohakuRiver to Rollcall's keys")
    .action(action(shell, configConvert(configuration)));
  addNotes(
    convert,
    "The file is read as YAML, or as Python if its name ends in .py: only plain values are read, and no code is run. " +
      "Older names of Rollcall's keys are converted as well. Keys without a counterpart become comments at the end " +
      "of the YAML. Secrets are printed as they are in the file.",
    '-o json prints {"settings": [{"key", "value", "source", "alias", "note"}], "leftAside": [{"key", ' +
      '"source", "why"}]}.',
    "Exit codes: 0 if the file was converted; 2 for wrong usage, including a file that is missing, cannot be " +
      "read, or contains keys that neither program knows.",
  );
  config
    .command("default")
    .description("Print a configuration file with every key, its default and an explanation")
    .action(
      action(shell, async () => {
        shell.out.write(await configuration.defaultYaml());
      }),
    );
}

interface ConfigListOptions extends ListingOptions {
  readonly config?: string;
}

function configList(configuration: ConfigurationView): Verb<ConfigListOptions> {
  return async (invocation) => {
    const { shell, options } = invocation;
    const page = await printListing(invocation, {
      columns: COLUMNS,
      nameOf: ({ path }: ListedSetting) => path,
      pages: onePage(async () => {
        const found = await configuration.list(options.config);
        for (const warning of found.warnings) shell.err.write(`warning: ${warning}\n`);
        return found;
      }),
      itemsOf: ({ settings }) => settings,
      whole: (pages) =>
        pages.flatMap(({ settings }) =>
          settings.map(({ path, doc, alias, flag, ...rest }) => ({
            key: path,
            ...rest,
            alias: alias ?? null,
            flag: flag ?? null,
            description: doc,
          })),
        ),
    });
    const problems = page?.problems ?? [];
    if (problems.length === 0) return;
    const refused = "these values contradict each other; processes that need them would not start:";
    throw new Failure([refused, ...problems].join("\n"));
  };
}

const COLUMNS: readonly Column<ListedSetting>[] = [
  { title: "KEY", name: "key", cell: ({ path }) => ({ text: path }) },
  {
    title: "VALUE",
    name: "value",
    limit: 40,
    cell: ({ value, source }) => optionalCell(value, source === "default" ? "plain" : "bold"),
  },
  {
    title: "SOURCE",
    name: "source",
    limit: 60,
    rank: 1,
    cell: ({ source, alias }) => ({ text: alias === undefined ? source : `${source}, as ${alias}` }),
  },
  { title: "DEFAULT", name: "default", wide: true, cell: (key) => optionalCell(key.default) },
  {
    title: "FLAG",
    name: "flag",
    wide: true,
    cell: ({ flag }) => ({ text: flag ? `--${flag}` : "-", raw: flag ?? "" }),
  },
  { title: "ENVIRONMENT", name: "environment", wide: true, cell: (key) => ({ text: key.environment }) },
  {
    title: "ALIASES",
    name: "aliases",
    wide: true,
    cell: ({ aliases }) => ({ text: aliases.join(", ") || "-", raw: aliases.join(",") }),
  },
];

function configConvert(configuration: ConfigurationView): Verb {
  return async ({ shell, args, options }) => {
    const format = outputFormat(options, ["yaml", "json"]);
    const { settings, leftAside, yaml } = await configuration.convert(args[0] ?? "");
    if (format === "yaml") {
      shell.out.write(yaml);
      return;
    }
    await writePlain(shell, format, {
      settings: settings.map(({ path, written, where, from, note }) => ({
        key: path,
        value: written,
        source: where,
        alias: from ?? null,
        note,
      })),
      leftAside: leftAside.map(({ path, where, why }) => ({ key: path, source: where, why })),
    });
  };
}
