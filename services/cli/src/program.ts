import { Command, CommanderError } from "commander";
import { buildInfo, versionText } from "./build-info.ts";
import { SHELL_WORDS } from "./choices.ts";
import { action, addNotes } from "./command.ts";
import { pickWord } from "./failure.ts";
import { columnsOf } from "./output/style.ts";
import type { Parts } from "./parts.ts";
import { type Shell, SILENT_SINK } from "./shell.ts";

/** Defines what a noun has: options, verbs and what they do. */
type Define = (command: Command, shell: Shell, parts: Parts) => void;

/** A word after the program's name. */
interface Noun {
  readonly name: string;
  readonly description: string;
  /** Loaded only when the command line names it: what the others need would slow it down. */
  load(): Promise<Define>;
}

const NOUNS: readonly Noun[] = [
  {
    name: "node",
    description: "Show the nodes, and decide about them",
    load: async () => (await import("./nouns/node.ts")).defineNode,
  },
  {
    name: "job",
    description: "Run jobs on the nodes, and show what became of them",
    load: async () => (await import("./nouns/job.ts")).defineJob,
  },
  {
    name: "run",
    description: "Run a command once on a node that fits, and exit with its exit code",
    load: async () => (await import("./nouns/run.ts")).defineRun,
  },
  {
    name: "token",
    description: "Manage join tokens, with which machines join",
    load: async () => (await import("./nouns/token.ts")).defineToken,
  },
  {
    name: "policy",
    description: "Manage health policies: how patient the failure detector is, and how often agents report",
    load: async () => (await import("./nouns/policy.ts")).definePolicy,
  },
  {
    name: "brake",
    description: "Show and overrule the brake, which holds back reactions when many nodes are lost at once",
    load: async () => (await import("./nouns/brake.ts")).defineBrake,
  },
  {
    name: "events",
    description: "Print the latest events, oldest first, and with --follow new ones",
    load: async () => (await import("./nouns/events.ts")).defineEvents,
  },
  {
    name: "webhook",
    description: "Manage webhooks, which are told of events over HTTPS; needs the role admin",
    load: async () => (await import("./nouns/webhook.ts")).defineWebhook,
  },
  {
    name: "apply",
    description: "Make health policies, labels, webhooks and jobs as files declare them",
    load: async () => (await import("./nouns/declared.ts")).defineApply,
  },
  {
    name: "diff",
    description: "Show what apply would change; exits with 1 when it would change something",
    load: async () => (await import("./nouns/declared.ts")).defineDiff,
  },
  {
    name: "export",
    description: "Write the policies, labels, webhooks and jobs that there are, as files declare them",
    load: async () => (await import("./nouns/declared.ts")).defineExport,
  },
  {
    name: "audit",
    description: "Show who did what, and who was refused what; needs the role admin",
    load: async () => (await import("./nouns/audit.ts")).defineAudit,
  },
  {
    name: "status",
    description: "Show the state of the control plane: nodes in numbers, brakes, processes, the log, NATS, upkeep",
    load: async () => (await import("./nouns/status.ts")).defineStatus,
  },
  {
    name: "doctor",
    description: "Check the deployment, and say what to do about what is wrong",
    load: async () => (await import("./nouns/doctor.ts")).defineDoctor,
  },
  {
    name: "config",
    description: "Show the configuration",
    load: async () => (await import("./nouns/config.ts")).defineConfig,
  },
  {
    name: "login",
    description: "Check a token, and save it with the server's address in a context",
    load: async () => (await import("./nouns/login.ts")).defineLogin,
  },
  {
    name: "logout",
    description: "Remove the token of a context; its addresses stay",
    load: async () => (await import("./nouns/login.ts")).defineLogout,
  },
  {
    name: "whoami",
    description: "Show who you are to the control plane, and what you may do",
    load: async () => (await import("./nouns/login.ts")).defineWhoami,
  },
  {
    name: "console",
    description: "Open the console in a browser, signed in as who you are here",
    load: async () => (await import("./nouns/console.ts")).defineConsole,
  },
  {
    name: "access",
    description: "Manage access tokens, with which people and programs call the API",
    load: async () => (await import("./nouns/access.ts")).defineAccess,
  },
  {
    name: "context",
    description: "Choose among several control planes",
    load: async () => (await import("./nouns/context.ts")).defineContext,
  },
  { name: "version", description: "Print the version", load: async () => defineVersion },
  {
    name: "completion",
    description: "Print a script that completes commands, options and node ids in your shell",
    load: async () => defineCompletion,
  },
];

const NOTES = [
  "The address of the control plane, the nearest wins: --registry, --health, --admin, --scheduler (services " +
    "deployed apart); --server; the context that --context names; ROLLCALL_REGISTRY, ROLLCALL_HEALTH, " +
    "ROLLCALL_ADMIN, ROLLCALL_SCHEDULER; " +
    "ROLLCALL_SERVER; the context of ROLLCALL_CONTEXT, else the current one; run.json in the data directory, " +
    "which `rollcall up` of the same user wrote; 127.0.0.1:7700.",
  "The access token: --token; --token-file; the context that --context names; ROLLCALL_TOKEN; " +
    "ROLLCALL_TOKEN_FILE; the context of ROLLCALL_CONTEXT, else the current one; admin-token in the data " +
    "directory. A context's token is sent to the addresses of that context alone, admin-token to this machine " +
    "and to the server of run.json alone. `rollcall login` creates contexts.",
  "TLS: https:// in the address, or HOST:PORT with any of --ca-file, --client-cert and --client-key, " +
    "--tls-server-name; the same by ROLLCALL_CA_FILE, ROLLCALL_CLIENT_CERT, ROLLCALL_CLIENT_KEY, " +
    "ROLLCALL_TLS_SERVER_NAME; clients of `rollcall up` read it from run.json.",
  "The data directory: ROLLCALL_DATA_DIR; .rollcall in the working directory, if there is one that is yours; " +
    "~/.rollcall; for root, unless it has that, /var/lib/rollcall.",
  "Tables fit the terminal, or COLUMNS: columns that matter least are left out; -o wide prints them all. " +
    "Elsewhere they are as wide as they have to be.",
  "Exit codes: 0 done and all output written, 1 refused or failed, 2 wrong usage, 130 interrupted (Ctrl-C); of " +
    "`rollcall run` those of its command, and 75 where that is not known. docs/reference/exit-codes.md has those of " +
    "every command.",
] as const;

/**
 * The command line as a tree of commands. Of the nouns only the one that `words` name is complete; the others are there
 * by name.
 */
export async function createProgram(shell: Shell, parts: Parts, words: readonly string[]): Promise<Command> {
  const program = addGlobalOptions(new Command("rollcall"), shell)
    .description("Who is here, who is well, and who may take work: the control plane for fleets of machines.")
    .version(versionText(buildInfo()), "--version", "Print the version")
    .helpOption("-h, --help", "Show help")
    .helpCommand("help [command]", "Show help");
  addNotes(program, ...NOTES);
  for (const { name, usage, description } of parts.verbs) {
    // Listed for help and completion; the executable's own parts read their words before commander sees them.
    program.command(`${name} ${usage}`.trim()).description(description).helpOption(false);
  }
  const named = nounIn(words, shell);
  for (const { name, description, load } of NOUNS) {
    const command = program.command(name).description(description);
    if (name !== named) continue;
    (await load())(command, shell, parts);
    // A noun that is nothing but its verbs shows them alone; each verb shows the global options.
    if (command.options.length === 0 && command.commands.length > 0)
      command.configureHelp({ showGlobalOptions: false });
  }
  return program;
}

const HELP_COLUMNS = 80;

function addGlobalOptions(program: Command, { out, err, env }: Pick<Shell, "out" | "err" | "env">): Command {
  return program
    .exitOverride()
    .configureOutput({
      writeOut: (text) => out.write(text),
      writeErr: (text) => err.write(text),
      getOutHelpWidth: () => columnsOf({ out, env }) || HELP_COLUMNS,
      getErrHelpWidth: () => columnsOf({ out: err, env }) || HELP_COLUMNS,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({ showGlobalOptions: true })
    .option("--server <address>", "HOST:PORT or URL of the control plane")
    .option("--registry <address>", "Address of the registry, when services are deployed apart")
    .option("--health <address>", "Address of health's readers, when services are deployed apart")
    .option("--admin <address>", "Address of admin, when services are deployed apart")
    .option("--scheduler <address>", "Address of the scheduler, when services are deployed apart")
    .option("--context <name>", "Context to use; `rollcall context list` shows them")
    .option("--token <token>", "Access token; other users may see it in the list of processes")
    .option("--token-file <file>", "File that holds the access token")
    .option("--ca-file <file>", "Authority of the server's TLS certificate, as PEM")
    .option("--client-cert <file>", "Certificate to show to servers that ask for one, as PEM")
    .option("--client-key <file>", "Its key, as PEM")
    .option("--tls-server-name <name>", "Name that the server's certificate must be for")
    .option("-o, --output <format>", "table, wide, name, json, yaml or csv; not every command knows all of them")
    .option("--timeout <duration>", "How long one call may take (default: 10s)")
    .option("--no-color", "Print no colours; NO_COLOR does the same");
}

/** The noun that commander will find, after the global options; undefined when there is none. */
function nounIn(words: readonly string[], shell: Shell): string | undefined {
  const scout = addGlobalOptions(new Command("rollcall"), { ...shell, out: SILENT_SINK, err: SILENT_SINK });
  try {
    const [first, second] = scout.parseOptions([...words]).operands;
    return first === "help" ? second : first;
  } catch (error) {
    // An option lacks its value: the real parse says so.
    if (error instanceof CommanderError) return undefined;
    throw error;
  }
}

function defineVersion(command: Command, shell: Shell): void {
  addNotes(command, '-o json|yaml prints {"version", "commit", "commitTime", "build", "node", "platform"}.');
  command.action(
    action(shell, async ({ options }) => {
      const { ANSWER_FORMATS, outputFormat, writePlain } = await import("./output/format.ts");
      const format = outputFormat(options, ANSWER_FORMATS);
      const { node, platform } = shell.runsOn;
      const text = versionText(buildInfo(), [`Node.js ${node}`, platform]);
      if (format === "table") shell.out.write(`${text}\n`);
      else await writePlain(shell, format, { ...buildInfo(), node, platform });
    }),
  );
}

/** The scripts that it prints call `rollcall __complete`, which run-cli.ts answers. */
function defineCompletion(command: Command, shell: Shell): void {
  addNotes(
    command.argument("<shell>", SHELL_WORDS.join(", ")),
    `  bash:  source <(rollcall completion bash)
  zsh:   rollcall completion zsh > "\${fpath[1]}/_rollcall"
  fish:  rollcall completion fish > ~/.config/fish/completions/rollcall.fish`,
  );
  command.action(
    action(shell, async ({ args }) => {
      const { completionScript } = await import("./completion/scripts.ts");
      shell.out.write(completionScript(pickWord("shell", args[0] ?? "", SHELL_WORDS)));
    }),
  );
}
