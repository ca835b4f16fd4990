import type { Command, Option } from "commander";
import type { Parts } from "../parts.ts";
import { createProgram } from "../program.ts";
import type { Shell } from "../shell.ts";
import { type Candidate, candidateReader, type ReadCandidates, type Source } from "./read-candidates.ts";
import { argumentSource, optionSource, optionWords } from "./values.ts";

/** Number of characters that the user must type before execution ids are offered where a job name also fits. */
const LEAST_OF_EXECUTION = 4;

/**
 * Answer `rollcall __complete WORD...` with one candidate per line: the word, a tab and its description. Never
 * fails.
 */
export async function answerCompletion(words: readonly string[], shell: Shell, parts: Parts): Promise<void> {
  const program = await createProgram(shell, parts, words);
  const candidates = await complete(words, { program, parts, read: candidateReader(shell) });
  for (const { word, description } of candidates) shell.out.write(`${word}\t${description}\n`);
}

/** Where completion gets its candidates. */
interface CompletionSources {
  readonly program: Command;
  readonly parts: Parts;
  /** Reads names from the control plane; empty if it does not respond quickly. */
  readonly read: ReadCandidates;
}

/** Find candidates for the last word, which the user is still typing. */
async function complete(words: readonly string[], sources: CompletionSources): Promise<readonly Candidate[]> {
  const joined = /^(--[a-z-]+=)(.*)$/.exec(words.at(-1) ?? "");
  if (joined !== null) return completeJoined(words.slice(0, -1), joined, sources);
  // Drop "=", because Bash splits --option=value into three words.
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
  if (pending !== null) return valuesOf({ command, option: pending, typed, earlier: left }, sources.read);
  if (typed.startsWith("-")) return startingWith(typed, optionsOf(command));
  if (command.commands.length > 0) return startingWith(typed, subcommandsOf(command));
  const last = command.registeredArguments.at(-1);
  const argument = command.registeredArguments[left.length] ?? (last?.variadic ? last : undefined);
  const source = argument === undefined ? null : argumentSource(command, argument.name());
  if (source === null) return [];
  // Offer executions only after some characters, because a list of all executions would hide the jobs.
  const wanted = source.filter((it) => it !== "execution" || source.length === 1 || typed.length >= LEAST_OF_EXECUTION);
  const found = await readAll(wanted, { typed, earlier: left }, sources.read);
  return startingWith(
    typed,
    found.filter(({ word }) => word === typed || !left.includes(word)),
  );
}

async function readAll(
  sources: readonly Source[],
  given: Parameters<ReadCandidates>[1],
  read: ReadCandidates,
): Promise<readonly Candidate[]> {
  return (await Promise.all(sources.map((source) => read(source, given)))).flat();
}

/** Complete the value of --option=value, where the shell passes it as one word. */
async function completeJoined(
  before: readonly string[],
  [, option = "", value = ""]: readonly string[],
  sources: CompletionSources,
): Promise<readonly Candidate[]> {
  const found = await complete([...before, option.slice(0, -1), value], sources);
  return found.map(({ word, description }) => ({ word: option + word, description }));
}

interface CompletionPoint {
  /** The command that the words select. */
  readonly command: Command;
  /** The arguments that the user has typed after the command. */
  readonly left: readonly string[];
  /** The option whose value is being typed. */
  readonly pending: Option | null;
}

function walk(program: Command, words: readonly string[]): CompletionPoint {
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

/** The value of an option, while it is typed. */
interface TypedValue {
  readonly command: Command;
  readonly option: Option;
  readonly typed: string;
  /** The arguments before it. */
  readonly earlier: readonly string[];
}

async function valuesOf({ command, option, typed, earlier }: TypedValue, read: ReadCandidates) {
  // Keep everything up to the last comma, because a value can be a list.
  const kept = typed.slice(0, typed.lastIndexOf(",") + 1);
  const words = optionWords(command, option.long ?? "").map((word) => ({ word, description: "" }));
  const rest = typed.slice(kept.length);
  const found = await readAll(optionSource(command, option.long ?? ""), { typed: rest, earlier }, read);
  return startingWith(
    typed,
    [...words, ...found].map(({ word, description }) => ({ word: kept + word, description })),
  );
}

function startingWith(typed: string, candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(({ word }) => word.startsWith(typed));
}
