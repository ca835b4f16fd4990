import type { Command } from "commander";
import type { Parts, RunAgain } from "./parts.ts";
import type { Shell } from "./shell.ts";

/** Adds a noun's options and verbs to its command. */
type Define = (command: Command, shell: Shell, parts: Parts, again: RunAgain) => void;

/** The headings of help, in its order. */
export const GROUPS = {
  start: "Get started:",
  work: "Nodes and work:",
  rules: "Health and events:",
  declared: "Declared state:",
  people: "People, programs and machines:",
  parts: "Run the parts of Rollcall:",
  other: "Other:",
} as const;
type Group = keyof typeof GROUPS;

/** The commands that run a part of Rollcall. Newcomers start with them. */
export const FIRST_VERBS: ReadonlySet<string> = new Set(["up", "demo"]);

/** A word after the program's name. */
export interface Noun {
  readonly name: string;
  readonly description: string;
  /** The heading under which help lists the noun. */
  readonly group: Group;
  /** The verb to run when none is given, such as `list`. */
  readonly standard?: string;
  /**
   * Load the noun's definition. Called only when the command line names the noun, so that other commands start
   * faster.
   */
  load(): Promise<Define>;
}

/** Every noun, in the order of help within its group. */
export const NOUNS: readonly Noun[] = [
  {
    name: "node",
    description: "List, inspect, approve and manage nodes",
    group: "work",
    standard: "list",
    load: async () => (await import("./nouns/node.ts")).defineNode,
  },
  {
    name: "top",
    description: "Show live usage of the nodes; like `node health`",
    group: "work",
    load: async () => (await import("./nouns/node.ts")).defineTop,
  },
  {
    name: "job",
    description: "Run jobs, and show their status and history",
    group: "work",
    standard: "list",
    load: async () => (await import("./nouns/job.ts")).defineJob,
  },
  {
    name: "run",
    description: "Run a command once on a suitable node, and exit with its exit code",
    group: "work",
    load: async () => (await import("./nouns/run.ts")).defineRun,
  },
  {
    name: "token",
    description: "Manage join tokens, which let machines join the cluster",
    group: "people",
    standard: "list",
    load: async () => (await import("./nouns/token.ts")).defineToken,
  },
  {
    name: "policy",
    description: "Manage health policies: how long the failure detector waits, and how often agents report",
    group: "rules",
    standard: "list",
    load: async () => (await import("./nouns/policy.ts")).definePolicy,
  },
  {
    name: "brake",
    description: "Show and override the brake, which delays reactions when many nodes are lost at once",
    group: "rules",
    standard: "status",
    load: async () => (await import("./nouns/brake.ts")).defineBrake,
  },
  {
    name: "events",
    description: "Print the latest events, oldest first; with --follow, also new ones",
    group: "rules",
    load: async () => (await import("./nouns/events.ts")).defineEvents,
  },
  {
    name: "webhook",
    description: "Manage webhooks, which receive events over HTTPS; requires the role admin",
    group: "rules",
    standard: "list",
    load: async () => (await import("./nouns/webhook.ts")).defineWebhook,
  },
  {
    name: "apply",
    description: "Apply files that declare health policies, labels, webhooks and jobs",
    group: "declared",
    load: async () => (await import("./nouns/declared.ts")).defineApply,
  },
  {
    name: "diff",
    description: "Show what apply would change; exits with 1 if there are differences",
    group: "declared",
    load: async () => (await import("./nouns/declared.ts")).defineDiff,
  },
  {
    name: "export",
    description: "Write the current policies, labels, webhooks and jobs as files for apply",
    group: "declared",
    load: async () => (await import("./nouns/declared.ts")).defineExport,
  },
  {
    name: "audit",
    description: "Show who did what, and which calls were refused; requires the role admin",
    group: "people",
    standard: "list",
    load: async () => (await import("./nouns/audit.ts")).defineAudit,
  },
  {
    name: "status",
    description: "Show the state of the control plane: node counts, brakes, processes, the event log, NATS, upkeep",
    group: "start",
    load: async () => (await import("./nouns/status.ts")).defineStatus,
  },
  {
    name: "doctor",
    description: "Check the deployment, and suggest how to fix problems",
    group: "other",
    load: async () => (await import("./nouns/doctor.ts")).defineDoctor,
  },
  {
    name: "config",
    description: "Show the configuration",
    group: "other",
    standard: "list",
    load: async () => (await import("./nouns/config.ts")).defineConfig,
  },
  {
    name: "login",
    description: "Verify a token, and save it with the server's address in a context",
    group: "start",
    load: async () => (await import("./nouns/login.ts")).defineLogin,
  },
  {
    name: "logout",
    description: "Remove the token of a context; keep its addresses",
    group: "people",
    load: async () => (await import("./nouns/login.ts")).defineLogout,
  },
  {
    name: "whoami",
    description: "Show your identity and your role on the control plane",
    group: "people",
    load: async () => (await import("./nouns/login.ts")).defineWhoami,
  },
  {
    name: "console",
    description: "Open the console in a browser, already signed in",
    group: "start",
    load: async () => (await import("./nouns/console.ts")).defineConsole,
  },
  {
    name: "access",
    description: "Manage access tokens, which let people and programs call the API",
    group: "people",
    standard: "list",
    load: async () => (await import("./nouns/access.ts")).defineAccess,
  },
  {
    name: "context",
    description: "Manage contexts, to switch between control planes",
    group: "people",
    standard: "list",
    load: async () => (await import("./nouns/context.ts")).defineContext,
  },
  {
    name: "version",
    description: "Print the version",
    group: "other",
    load: async () => (await import("./nouns/version.ts")).defineVersion,
  },
  {
    name: "options",
    description: "List the options of all commands, and where addresses and tokens come from",
    group: "other",
    load: async () => (await import("./help/options.ts")).defineOptions,
  },
  {
    name: "completion",
    description: "Print a shell completion script for commands, options and node ids",
    group: "other",
    load: async () => (await import("./completion/define-completion.ts")).defineCompletion,
  },
];
