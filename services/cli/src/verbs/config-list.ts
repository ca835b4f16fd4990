import { Failure } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";
import type { ConfigurationView, ListedSetting } from "../parts.ts";

/** What `config list` takes. */
export interface ConfigListOptions {
  readonly config?: string;
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
}

const COLUMNS: readonly Column<ListedSetting>[] = [
  { title: "KEY", name: "key", cell: ({ path }) => ({ text: path }) },
  {
    title: "VALUE",
    name: "value",
    limit: 40,
    cell: ({ value, source }) => ({
      text: value === "" ? "-" : value,
      raw: value,
      style: source === "default" ? "plain" : "bold",
    }),
  },
  {
    title: "SOURCE",
    name: "source",
    limit: 60,
    cell: ({ source, alias }) => ({
      text: alias === undefined ? source : `${source}, as ${alias}`,
    }),
  },
];

const WIDE_COLUMNS: readonly Column<ListedSetting>[] = [
  ...COLUMNS,
  {
    title: "DEFAULT",
    name: "default",
    cell: (key) => ({ text: key.default || "-", raw: key.default }),
  },
  {
    title: "FLAG",
    name: "flag",
    cell: ({ flag }) => ({ text: flag ? `--${flag}` : "-", raw: flag ?? "" }),
  },
  { title: "ENVIRONMENT", name: "environment", cell: (key) => ({ text: key.environment }) },
  {
    title: "ALIASES",
    name: "aliases",
    cell: ({ aliases }) => ({ text: aliases.join(", ") || "-", raw: aliases.join(",") }),
  },
];

/**
 * `config list`: every key of every service with its value, where it comes from, and what else it may be called; and
 * which of them contradict each other.
 */
export function configList(configuration: ConfigurationView): Verb<ConfigListOptions> {
  return async ({ shell, options }) => {
    const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
    const { settings, problems, warnings } = await configuration.list(options.config);
    for (const warning of warnings) shell.err.write(`warning: ${warning}\n`);
    const hideHeader = options.hideHeader ?? false;
    if (format === "table") {
      const wide = options.wide ?? false;
      const paint = choosePaint(shell, options);
      const table = new TablePrinter(wide ? WIDE_COLUMNS : COLUMNS, { hideHeader, wide, paint });
      shell.out.write(table.print(settings));
    } else if (format === "csv") {
      if (!hideHeader) shell.out.write(csvHeader(WIDE_COLUMNS));
      shell.out.write(csvRows(WIDE_COLUMNS, settings));
    } else {
      const { formatStructured } = await import("../output/structured.ts");
      const plain = settings.map(({ path, doc, alias, flag, ...rest }) => ({
        key: path,
        ...rest,
        alias: alias ?? null,
        flag: flag ?? null,
        description: doc,
      }));
      shell.out.write(await formatStructured(format, plain));
    }
    if (problems.length > 0) {
      const refused = "these values do not go together, and what needs them would not start:";
      throw new Failure([refused, ...problems].join("\n"));
    }
  };
}
