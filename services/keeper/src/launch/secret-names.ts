import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, Loop, type Task } from "@rollcall/process";
import { isSecretName, type SecretGrants } from "./permissions.ts";

/** Maximum number of secrets that a node reports. */
const MOST_SECRETS = 64;
/** Maximum length of a reported name, so that a node's description stays small. */
const MOST_NAME_CHARS = 128;
const READ_EVERY_MS = 10_000;

/** The secrets of a machine: those with grants, and the other files in the directory, which no job can use yet. */
export class SecretNames {
  readonly task: Task;
  readonly #directory: string | null;
  readonly #granted: readonly SecretGrants[];
  readonly #listeners = new Set<() => void>();
  #others: readonly string[] = [];

  constructor(
    { secrets, secretGrants }: { readonly secrets: string | null; readonly secretGrants: readonly SecretGrants[] },
    clock: Clock,
  ) {
    this.#directory = secrets;
    this.#granted = secretGrants;
    this.task = new Loop({ name: "list-secrets", clock, everyMs: READ_EVERY_MS, turn: () => this.#read() });
  }

  /** The secrets to report, those with grants first. */
  get secrets(): readonly SecretGrants[] {
    return [...this.#granted, ...this.#others.map((name) => ({ name, grants: [] }))].slice(0, MOST_SECRETS);
  }

  /** Subscribe to changes. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async #read(): Promise<void> {
    const before = this.#others.join("/");
    this.#others = this.#directory === null ? [] : await this.#withoutGrants(this.#directory);
    if (this.#others.join("/") !== before) for (const listener of this.#listeners) listener();
  }

  /** The names of files that could be granted. Without permission to read the directory, there are none. */
  async #withoutGrants(directory: string): Promise<readonly string[]> {
    const granted = new Set(this.#granted.map(({ name }) => name));
    const names = (await readdir(directory).catch(() => []))
      .filter((name) => isSecretName(name) && name.length <= MOST_NAME_CHARS && !granted.has(name))
      .sort()
      .slice(0, Math.max(0, MOST_SECRETS - granted.size));
    const files = await Promise.all(
      names.map(async (name) => {
        const found = await lstat(join(directory, name)).catch(() => null);
        return found?.isFile() === true ? [name] : [];
      }),
    );
    return files.flat();
  }
}
