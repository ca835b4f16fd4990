import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { Command, Option } from "commander";
import {
  APPROVAL_WORDS,
  COLUMN_GROUPS,
  CONNECTION_WORDS,
  EVENT_TYPE_WORDS,
  EXECUTION_STATE_WORDS,
  JOB_STATE_WORDS,
  JOB_TYPE_WORDS,
  ORDER_WORDS,
  OUTPUT_WORDS,
  ROLE_WORDS,
  SCHEDULING_WORDS,
  SHELL_WORDS,
  STATUS_WORDS,
  TYPE_WORDS,
} from "../choices.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { chooseContext } from "../contexts/choose-context.ts";
import { readContexts } from "../contexts/context-file.ts";
import { readNodes } from "../nodes/read-nodes.ts";
import { parseSelection } from "../nodes/selection.ts";
import type { Parts } from "../parts.ts";
import { createProgram } from "../program.ts";
import type { Shell } from "../shell.ts";

/** A person waits for the answer with a finger on the tab key. */
const TIMEOUT = "1500ms";
const MOST_NODES = 1000;
/** Letters of an execution's id that must be typed where the name of a job will do as well. */
const LEAST_OF_EXECUTION = 4;

/** Answer `rollcall __complete WORD...`: one candidate a line, a tab, and what it is. It never fails. */
export async function answerCompletion(words: readonly string[], shell: Shell, parts: Parts): Promise<void> {
  const candidates = await complete(words, {
    program: await createProgram(shell, parts, words),
    parts,
    nodeIds: (typed) => readNodeIds(shell, typed),
    jobNames: () => readJobNames(shell),
    executionIds: () => readExecutionIds(shell),
    contextNames: async () => {
      const contexts = await readContexts(shell).catch(() => null);
      return (contexts?.contexts ?? []).map(({ name }) => name);
    },
  });
  for (const { word, description } of candidates) shell.out.write(`${word}\t${description}\n`);
}

async function readNodeIds(shell: Shell, typed: string): Promise<readonly string[]> {
  try {
    const chosenContext = await chooseContext(shell, {});
    const control = reachControlPlane(shell, { timeout: TIMEOUT, color: false, chosenContext });
    const registry = control.client("registry", RegistryService);
    const ids: string[] = [];
    for await (const { nodes } of readNodes(control, registry, parseSelection({ search: typed }), {
      limit: MOST_NODES,
    })) {
      ids.push(...nodes.map((node) => node.id));
    }
    return ids;
  } catch {
    // A completion that fails must stay silent: its words would land in the middle of the user's line.
    return [];
  }
}

async function readJobNames(shell: Shell): Promise<readonly string[]> {
  try {
    const chosenContext = await chooseContext(shell, {});
    const control = reachControlPlane(shell, { timeout: TIMEOUT, color: false, chosenContext });
    const { jobs } = await control.client("scheduler", JobService).listJobs({ pageSize: MOST_NODES });
    return jobs.flatMap(({ spec }) => spec?.name ?? []);
  } catch {
    // As above.
    return [];
  }
}

/** The newest executions: those that people stop, adopt and read. */
async function readExecutionIds(shell: Shell): Promise<readonly string[]> {
  try {
    const chosenContext = await chooseContext(shell, {});
    const control = reachControlPlane(shell, { timeout: TIMEOUT, color: false, chosenContext });
    const { executions } = await control.client("scheduler", JobService).listExecutions({ pageSize: MOST_NODES });
    return executions.map(({ id }) => id);
  } catch {
    // As above.
    return [];
  }
}

/** Something that the word under the cursor may become. */
interface Candidate {
  readonly word: string;
  readonly description: string;
}

/** What completion asks. */
interface CompletionSources {
  readonly program: Command;
  readonly parts: Parts;
  /** The ids of nodes that contain what is typed; none when there is no answer soon. */
  nodeIds(typed: string): Promise<readonly string[]>;
  /** The names of jobs; none when there is no answer soon. */
  jobNames(): Promise<readonly string[]>;
  /** The ids of the newest executions; none when there is no answer soon. */
  executionIds(): Promise<readonly string[]>;
  /** The names of this user's contexts. */
  contextNames(): Promise<readonly string[]>;
}

/** The words that options take. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  "--output": OUTPUT_WORDS,
  "--filter-approval": APPROVAL_WORDS,
  "--filter-status": STATUS_WORDS,
  "--filter-type": TYPE_WORDS,
  "--filter-connection": CONNECTION_WORDS,
  "--filter-scheduling": SCHEDULING_WORDS,
  "--order-by": ORDER_WORDS,
  "--role": ROLE_WORDS,
  "--show": COLUMN_GROUPS,
  "--type": EVENT_TYPE_WORDS,
  "--types": JOB_TYPE_WORDS,
  "--states": [...new Set([...JOB_STATE_WORDS, ...EXECUTION_STATE_WORDS])],
};

/** Find what the last of the words, which the user is still typing, may become. */
async function complete(words: readonly string[], sources: CompletionSources): Promise<readonly Candidate[]> {
  const joined = /^(--[a-z-]+=)(.*)$/.exec(words.at(-1) ?? "");
  if (joined !== null) return completeJoined(words.slice(0, -1), joined, sources);
  // Bash takes --option=value for three words.
  const [typed = "", ...earlier] = words.filter((word) => word !== "=").toReversed();
  const before = earlier.toReversed();
  if (words.at(-1) === "=") return complete([...before, typed, ""], sources);
  const { command, left, pending } = walk(sources.program, before);
  const foreign = sources.parts.verbs.find((verb) => command.name() === verb.name);
  if (foreign !== undefined && command.parent === sources.program) {
    const found = await foreign.complete([...left, typed]);
    return startingWith(
      typed,
      found.map((word) => ({ word, description: "" })),
    );
  }
  if (pending?.long === "--node") return nodesOf(await sources.nodeIds(typed), typed);
  const executions = async () => executionsOf(await sources.executionIds(), typed);
  if (pending?.long === "--execution") return executions();
  const contexts = async () =>
    startingWith(
      typed,
      (await sources.contextNames()).map((word) => ({ word, description: "context" })),
    );
  if (pending?.long === "--context") return contexts();
  if (pending !== null) return valuesOf(pending, typed);
  if (typed.startsWith("-")) return startingWith(typed, optionsOf(command));
  if (command.commands.length > 0) return startingWith(typed, subcommandsOf(command));
  const last = command.registeredArguments.at(-1);
  const argument = command.registeredArguments[left.length] ?? (last?.variadic ? last : undefined);
  if (argument?.name() === "shell") {
    return startingWith(
      typed,
      SHELL_WORDS.map((word) => ({ word, description: "" })),
    );
  }
  if (argument?.name() === "context") return contexts();
  if (argument?.name() === "execution") return executions();
  if (argument?.name() === "job" || argument?.name() === "job-or-execution") {
    const names = await sources.jobNames();
    const jobs = startingWith(
      typed,
      names.map((word) => ({ word, description: "job" })),
    );
    // A list of all executions would hide the jobs.
    const isExecution = argument.name() === "job-or-execution" && typed.length >= LEAST_OF_EXECUTION;
    return isExecution ? [...jobs, ...(await executions())] : jobs;
  }
  if (argument?.name() !== "node") return [];
  const ids = await sources.nodeIds(typed);
  return startingWith(
    typed,
    ids.filter((id) => id === typed || !left.includes(id)).map((word) => ({ word, description: "node" })),
  );
}

/** Complete the value of --option=value, which only the shell takes for one word. */
async function completeJoined(
  before: readonly string[],
  [, option = "", value = ""]: readonly string[],
  sources: CompletionSources,
): Promise<readonly Candidate[]> {
  const found = await complete([...before, option.slice(0, -1), value], sources);
  return found.map(({ word, description }) => ({ word: option + word, description }));
}

interface Place {
  /** The command that the words lead to. */
  readonly command: Command;
  /** Its arguments so far. */
  readonly left: readonly string[];
  /** The option whose value is being typed. */
  readonly pending: Option | null;
}

function walk(program: Command, words: readonly string[]): Place {
  let command = program;
  let pending: Option | null = null;
  const left: string[] = [];
  for (const word of words) {
    if (pending !== null) {
      pending = null;
    } else if (word.startsWith("-")) {
      const option = allOptions(command).find(({ short, long }) => word === short || word === long);
      pending = option?.required ? option : null;
    } else {
      const next =
        left.length === 0
          ? command.commands.find((it) => it.name() === word || it.aliases().includes(word))
          : undefined;
      if (next === undefined) left.push(word);
      else command = next;
    }
  }
  return { command, left, pending };
}

function allOptions(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent === null ? [] : allOptions(command.parent))];
}

function optionsOf(command: Command): readonly Candidate[] {
  return allOptions(command).flatMap(({ short, long, description }) =>
    [short, long].flatMap((word) => (word?.startsWith("--") ? [{ word, description }] : [])),
  );
}

function subcommandsOf(command: Command): readonly Candidate[] {
  return command.commands.map((it) => ({ word: it.name(), description: it.description() }));
}

function nodesOf(ids: readonly string[], typed: string): readonly Candidate[] {
  return startingWith(
    typed,
    ids.map((word) => ({ word, description: "node" })),
  );
}

function executionsOf(ids: readonly string[], typed: string): readonly Candidate[] {
  return startingWith(
    typed,
    ids.map((word) => ({ word, description: "execution" })),
  );
}

function valuesOf(option: Option, typed: string): readonly Candidate[] {
  // Values may be a list: what stands before the last comma stays.
  const kept = typed.slice(0, typed.lastIndexOf(",") + 1);
  const values = VALUES[option.long ?? ""] ?? [];
  return startingWith(
    typed,
    values.map((value) => ({ word: kept + value, description: "" })),
  );
}

function startingWith(typed: string, candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(({ word }) => word.startsWith(typed));
}
