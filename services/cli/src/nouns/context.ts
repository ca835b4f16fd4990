import type { Command } from "commander";
import { action, addListingOptions, addNotes } from "../command.ts";
import { type Context, type Contexts, contextNamed, isContextName } from "../contexts/context.ts";
import { changeContexts, contextFilePath, readContexts } from "../contexts/context-file.ts";
import { Failure, UsageError } from "../failure.ts";
import type { GlobalOptions, Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, writePlain } from "../output/format.ts";
import { type ListingOptions, onePage, printListing } from "../output/listing.ts";
import type { Column } from "../output/table.ts";
import { fieldLines } from "../output/text.ts";
import type { Shell } from "../shell.ts";

const CONTEXT = "Name of the context";

/** Define the verbs of `context`. */
export function defineContext(context: Command, shell: Shell): void {
  addNotes(
    context,
    "Contexts are stored in rollcall/config.yaml in XDG_CONFIG_HOME, or ~/.config. `rollcall login` creates them.",
  );
  const list = context.command("list").description("List contexts; * marks the current one");
  addNotes(addListingOptions(list), '-o json|yaml prints a list of {"current", "name", "server", "login"}.');
  list.action(action(shell, contextList));
  context
    .command("use")
    .description("Switch to a context")
    .argument("<context>", CONTEXT)
    .action(action(shell, contextUse));
  context
    .command("show")
    .description("Show a context, by default the one in use; its token is not shown")
    .argument("[context]", CONTEXT)
    .action(action(shell, contextShow));
  context
    .command("delete")
    .description("Delete a context and its token; the token is not revoked")
    .argument("<context>", CONTEXT)
    .action(action(shell, contextDelete));
  context
    .command("rename")
    .description("Rename a context")
    .argument("<context>", CONTEXT)
    .argument("<new-name>", "New name of the context")
    .action(action(shell, contextRename));
}

/** A context as displayed: never with its token. */
interface Shown {
  readonly current: boolean;
  readonly name: string;
  readonly server: string;
  readonly login: string;
}

const contextList: Verb<ListingOptions> = async (invocation) => {
  await printListing(invocation, {
    columns: COLUMNS,
    nameOf: ({ name }: Shown) => name,
    pages: onePage(() => readContexts(invocation.shell)),
    itemsOf: shownOf,
    whole: (pages) => pages.flatMap(shownOf).map((it) => ({ ...it })),
  });
};

const COLUMNS: readonly Column<Shown>[] = [
  {
    title: "CURRENT",
    name: "current",
    cell: ({ current }) => ({ text: current ? "*" : "", raw: String(current) }),
  },
  { title: "NAME", name: "name", cell: ({ name }) => ({ text: name }) },
  { title: "SERVER", name: "server", rank: 1, cell: ({ server }) => ({ text: server }) },
  { title: "LOGIN", name: "login", rank: 2, cell: ({ login }) => ({ text: login }) },
];

function shownOf({ contexts, current }: Contexts): readonly Shown[] {
  return contexts.map((context) => {
    const { name, server, registry, health, admin, scheduler } = context;
    const apart = [registry, health, admin, scheduler].filter((it) => it !== null).join(" ");
    return { current: name === current, name, server: server ?? (apart || "-"), login: loginOf(context) };
  });
}

const contextUse: Verb = async ({ shell, args }) => {
  const [name = ""] = args;
  await changeContexts(shell, (contexts) => {
    mustKnow(contexts, name);
    return { ...contexts, current: name };
  });
  shell.out.write(`Using context ${name}\n`);
};

const contextShow: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const contexts = await readContexts(shell);
  const context = mustKnow(contexts, args[0] ?? nameInUse(shell, options, contexts));
  const fields = fieldsOf(context);
  if (format !== "table") {
    await writePlain(shell, format, fields);
    return;
  }
  shell.out.write(
    fieldLines(
      Object.entries(fields).map(([key, value]) => [key, value ?? ""]),
      " ",
    ),
  );
  shell.err.write(`from ${contextFilePath(shell)}\n`);
};

const contextDelete: Verb = async ({ shell, args }) => {
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

const contextRename: Verb = async ({ shell, args }) => {
  const [from = "", to = ""] = args;
  if (!isContextName(to)) {
    throw new UsageError(`cannot use '${to}' as name of a context, should be 1 to 63 letters, digits and any of ._:@-`);
  }
  await changeContexts(shell, (contexts) => {
    mustKnow(contexts, from);
    if (contextNamed(contexts, to) !== null) throw new Failure(`context '${to}' already exists`);
    return {
      current: contexts.current === from ? to : contexts.current,
      contexts: contexts.contexts.map((it) => (it.name === from ? { ...it, name: to } : it)),
    };
  });
  shell.out.write(`Renamed context ${from} to ${to}\n`);
};

function loginOf({ token, tokenFile, oidc }: Context): string {
  if (oidc !== null) return `issuer ${oidc.issuer}`;
  if (tokenFile !== null) return `file ${tokenFile}`;
  return token === null ? "none" : "token";
}

function fieldsOf(context: Context): Readonly<Record<string, string | null>> {
  const { name, server, registry, health, admin, scheduler, caFile } = context;
  const apart = server === null ? { registry, health, admin, scheduler } : {};
  return { name, server, ...apart, login: loginOf(context), ca_file: caFile };
}

function nameInUse(shell: Shell, options: GlobalOptions, { current }: Contexts): string {
  const name = options.context || shell.env.ROLLCALL_CONTEXT || current;
  if (name !== null) return name;
  throw new Failure(
    "no context is in use\nhint: `rollcall login` creates one, `rollcall context use NAME` selects one",
  );
}

function mustKnow(contexts: Contexts, name: string): Context {
  const context = contextNamed(contexts, name);
  if (context !== null) return context;
  throw new Failure(`there is no context '${name}'\nhint: \`rollcall context list\` lists all contexts`);
}
