import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, systemErrorWords } from "@rollcall/process";
import { canUseSecret } from "@rollcall/wire";
import type { ExecutionIdentity } from "../journal/execution-entry.ts";
import { expand, makeEnvironment, wrongNames } from "./environment.ts";
import { isSecretName, type WorkRules } from "./permissions.ts";

/** The parts of a plan that determine an execution's environment. */
export interface JobEnvironment {
  readonly job: string;
  /** Who submitted the job. */
  readonly owner: string;
  readonly env: Readonly<Record<string, string>>;
  /** The secrets' file names, keyed by variable. */
  readonly secretEnv: Readonly<Record<string, string>>;
}

/** Why an execution is not started, human-readable. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

const MOST_SECRET_BYTES = 65_536;

/** Build the environment of an execution, including the secrets that its job requests. Throws Refusal. */
export async function environmentOf(
  identity: ExecutionIdentity,
  plan: JobEnvironment,
  rules: WorkRules,
  defaults: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const { job, env } = plan;
  const secrets = await readSecrets(plan, rules);
  const made = makeEnvironment({ ...identity, job, defaults, env, secrets });
  const wrong = wrongNames(made);
  if (wrong.length > 0) throw new Refusal(`these variables cannot be set: ${wrong.slice(0, 5).join(", ")}`);
  return made;
}

/** The words of a command, with variables replaced. Throws Refusal. */
export function wordsOf(argv: readonly string[], env: Readonly<Record<string, string>>): readonly string[] {
  const words = argv.map((word) => expand(word, env));
  if (words.some((word) => word.includes("\0"))) throw new Refusal("its command contains a NUL byte");
  return words;
}

async function readSecrets(
  { job, owner, secretEnv }: JobEnvironment,
  { secrets, secretGrants }: WorkRules,
): Promise<Readonly<Record<string, string>>> {
  const entries = Object.entries(secretEnv);
  if (entries.length === 0) return {};
  if (secrets === null) throw new Refusal("the node has no secrets: Work.Secrets is not set");
  const values: [string, string][] = [];
  for (const [variable, name] of entries) {
    if (!isSecretName(name)) throw new Refusal(`${JSON.stringify(name)} is not a valid secret name`);
    if (!canUseSecret(secretGrants, name, { owner, job })) {
      const who = `job ${job} of ${owner === "" ? "an unknown owner" : owner}`;
      throw new Refusal(`the node does not allow ${who} to use the secret ${name}: see its Work.SecretGrants`);
    }
    values.push([variable, await readSecret(secrets, name)]);
  }
  return Object.fromEntries(values);
}

async function readSecret(directory: string, name: string): Promise<string> {
  // Do not follow links: the owner of the directory must not be able to point a root keeper at root's files.
  const file = await open(join(directory, name), constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
    const isAbsent = errorCode(error) === "ENOENT";
    throw new Refusal(
      isAbsent ? `the node has no secret ${name}` : `the secret ${name} cannot be read: ${systemErrorWords(error)}`,
    );
  });
  try {
    const found = await file.stat();
    if (found.uid !== 0 && found.uid !== process.getuid?.()) {
      throw new Refusal(`the secret ${name} must belong to root or the keeper's user`);
    }
    if (!found.isFile() || found.size > MOST_SECRET_BYTES)
      throw new Refusal(`the secret ${name} is not a file of at most ${MOST_SECRET_BYTES} bytes`);
    return (await file.readFile("utf8")).replace(/\r?\n$/, "");
  } finally {
    await file.close();
  }
}
