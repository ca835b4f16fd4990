import { readdir, readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { DeclaredObject } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { type FileProblem, problemLine } from "@rollcall/wire/job-file";
import { MISUSED } from "../exit-codes.ts";
import { Exit, UsageError, unreadableFile } from "../failure.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { parseStateFile } from "./state-file.ts";

/** The combined content of files of declared state. */
export interface DeclaredFiles {
  readonly objects: readonly DeclaredObject[];
  /** The owner that the files name; empty for none. */
  readonly owner: string;
}

/** Maximum number of files in one directory. */
const MOST_FILES = 200;
/** Maximum number of objects in one call, as in the API. */
const MOST_OBJECTS = 500;
/**
 * Read files and directories of declared state; "-" is standard input. Throws Exit with every problem of all files, or
 * UsageError.
 */
export async function readStateFiles(shell: Shell, names: readonly string[]): Promise<DeclaredFiles> {
  const objects: DeclaredObject[] = [];
  const problems: string[] = [];
  const owners = new Set<string>();
  const seen = new Set<string>();
  for (const { file, text } of await readTexts(shell, names)) {
    const read = parseStateFile(text, seen);
    objects.push(...read.objects);
    if (read.owner !== "") owners.add(read.owner);
    problems.push(...read.problems.map((problem: FileProblem) => printable(problemLine(file, problem))));
  }
  // Print one line per problem, unlike a UsageError, whose message is a single line.
  if (problems.length > 0) throw new Exit(MISUSED, problems.join("\n"));
  if (owners.size > 1) throw new UsageError(`the files name several owners: ${[...owners].join(", ")}`);
  if (objects.length > MOST_OBJECTS) {
    throw new UsageError(`the files declare ${objects.length} objects; the limit is ${MOST_OBJECTS} at once`);
  }
  return { objects, owner: [...owners][0] ?? "" };
}

async function readTexts(shell: Shell, names: readonly string[]) {
  const texts: { readonly file: string; readonly text: string }[] = [];
  for (const name of names) {
    if (name === "-") {
      if (shell.readInput === undefined) throw new UsageError("cannot read declared state: there is no standard input");
      texts.push({ file: "stdin", text: await shell.readInput() });
      continue;
    }
    for (const file of await filesOf(shell, name)) {
      texts.push({ file, text: await readFile(resolve(shell.cwd, file), "utf8").catch(unreadable(file)) });
    }
  }
  return texts;
}

async function filesOf(shell: Shell, name: string): Promise<readonly string[]> {
  const path = resolve(shell.cwd, name);
  const found = await stat(path).catch(unreadable(name));
  if (!found.isDirectory()) return [name];
  const entries = await readdir(path, { withFileTypes: true }).catch(unreadable(name));
  const files: string[] = [];
  for (const entry of entries) {
    if (!/\.(ya?ml|json)$/.test(entry.name)) continue;
    const file = join(name, entry.name);
    // Follow symbolic links, because a mounted ConfigMap consists of them, and objects of a skipped link would look as
    // if they were no longer declared.
    const isFile = entry.isSymbolicLink()
      ? (await stat(resolve(shell.cwd, file)).catch(unreadable(file))).isFile()
      : entry.isFile();
    if (isFile) files.push(file);
  }
  if (files.length === 0) throw new UsageError(`${name} has no .yaml, .yml or .json file`);
  if (files.length > MOST_FILES) throw new UsageError(`${name} has ${files.length} files; the limit is ${MOST_FILES}`);
  return files.sort();
}

function unreadable(name: string) {
  return (cause: unknown): never => {
    throw unreadableFile(name, cause);
  };
}
