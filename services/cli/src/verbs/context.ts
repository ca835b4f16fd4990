import { type Context, type Contexts, contextNamed, isContextName } from "../contexts/context.ts";
import { changeContexts, contextFilePath, readContexts } from "../contexts/context-file.ts";
import { Failure, UsageError } from "../failure.ts";
import type { GlobalOptions, Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import type { Plain } from "../output/structured.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";
import type { Shell } from "../shell.ts";

/** A context as it may be shown: never its token. */
interface Shown {
  readonly current: boolean;
  readonly name: string;
  readonly server: string;
  readonly login: string;
}

/** `context list`: every context, the current one marked. */
export const contextList: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const { current, contexts } = await readContexts(shell);
  const shown = contexts.map((context) => shownOf(context, current));
  if (format === "csv") {
    shell.out.write(csvHeader(COLUMNS) + csvRows(COLUMNS, shown));
  } else if (format === "table") {
    const look = { hideHeader: false, wide: true, paint: choosePaint(shell, options) };
    shell.out.write(new TablePrinter(COLUMNS, look).print(shown));
  } else {
    await writeStructured(
      shell,
      format,
      shown.map((it) => ({ ...it })),
    );
  }
};

/** `context use`: another one is the current one. */
export const contextUse: Verb = async ({ shell, args }) => {
  const [name = ""] = args;
  await changeContexts(shell, (contexts) => {
    mustKnow(contexts, name);
    return { ...contexts, current: name };
  });
  shell.out.write(`Using context ${name}\n`);
};

/** `context show`: one context, the current one unless another is named, without its secrets. */
export const contextShow: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const contexts = await readContexts(shell);
  const name = args[0] ?? nameThatCounts(shell, options, contexts);
  const context = mustKnow(contexts, name);
  const fields = fieldsOf(context);
  if (format !== "table") {
    await writeStructured(shell, format, fields);
    return;
  }
  for (const [key, value] of Object.entries(fields)) {
    shell.out.write(`${key.padEnd(WIDTH)}${value ?? "-"}\n`);
  }
  shell.err.write(`from ${contextFilePath(shell)}\n`);
};

/** `context delete`: a context and its token are forgotten; nothing is revoked. */
export const contextDelete: Verb = async ({ shell, args }) => {
  const [name = ""] = args;
  await changeContexts(shell, (contexts) => {
    mustKnow(contexts, name);
    return {
      current: contexts.current === name ? null : contexts.current,
      contexts: contexts.contexts.filter((it) => it.name !== name),
    };
  });
  shell.out.write(`Deleted context ${name}\n`);
};

/** `context rename`. */
export const contextRename: Verb = async ({ shell, args }) => {
  const [from = "", to = ""] = args;
  if (!isContextName(to)) {
    throw new UsageError(`cannot use '${to}' as name of a context, should be 1 to 63 letters, digits and any of ._:@-`);
  }
  await changeContexts(shell, (contexts) => {
    mustKnow(contexts, from);
    if (contextNamed(contexts, to) !== null) throw new Failure(`there is a context '${to}' already`);
    return {
      current: contexts.current === from ? to : contexts.current,
      contexts: contexts.contexts.map((it) => (it.name === from ? { ...it, name: to } : it)),
    };
  });
  shell.out.write(`Renamed context ${from} to ${to}\n`);
};

const WIDTH = 12;

const COLUMNS: readonly Column<Shown>[] = [
  {
    title: "CURRENT",
    name: "current",
    cell: ({ current }) => ({ text: current ? "*" : "", raw: String(current) }),
  },
  { title: "NAME", name: "name", cell: ({ name }) => ({ text: name }) },
  { title: "SERVER", name: "server", cell: ({ server }) => ({ text: server }) },
  { title: "LOGIN", name: "login", cell: ({ login }) => ({ text: login }) },
];

function shownOf(context: Context, current: string | null): Shown {
  const { name, server, registry, health, admin } = context;
  const apart = [registry, health, admin].filter((it) => it !== null).join(" ");
  return {
    current: name === current,
    name,
    server: server ?? (apart || "-"),
    login: loginOf(context),
  };
}

function loginOf({ token, tokenFile, oidc }: Context): string {
  if (oidc !== null) return `issuer ${oidc.issuer}`;
  if (tokenFile !== null) return `file ${tokenFile}`;
  return token === null ? "none" : "token";
}

function fieldsOf(context: Context): Readonly<Record<string, string | null>> {
  const { name, server, registry, health, admin, caFile } = context;
  const apart = server === null ? { registry, health, admin } : {};
  return { name, server, ...apart, login: loginOf(context), ca_file: caFile };
}

function nameThatCounts(shell: Shell, options: GlobalOptions, { current }: Contexts): string {
  const name = options.context || shell.env.ROLLCALL_CONTEXT || current;
  if (name !== null) return name;
  throw new Failure("no context is in use\nhint: `rollcall login` makes one, `rollcall context use NAME` chooses one");
}

function mustKnow(contexts: Contexts, name: string): Context {
  const context = contextNamed(contexts, name);
  if (context !== null) return context;
  throw new Failure(`there is no context '${name}'\nhint: \`rollcall context list\` shows those that there are`);
}

async function writeStructured(shell: Shell, format: "json" | "yaml", value: Plain): Promise<void> {
  const { formatStructured } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, value));
}
