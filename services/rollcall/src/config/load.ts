import { resolve } from "node:path";
import { isNativeError } from "node:util/types";
import { CLIENT_VARIABLES, Failure, type Shell, UsageError } from "@rollcall/cli";
import {
  type Config,
  type ConfigFile,
  type ConfigKeys,
  type Flags,
  type ForeignIndex,
  formatProblems,
  type LoadOptions,
  loadConfig,
  readConfigFile,
} from "@rollcall/config";

/** Where a configuration comes from. */
export interface ConfigurationSources {
  readonly shell: Pick<Shell, "env" | "cwd">;
  /** --config; ROLLCALL_CONFIG when absent. */
  readonly file: string | undefined;
  readonly flags: Flags;
}

/** Which configuration is wanted. */
export type WantedConfiguration<T> = Pick<LoadOptions<T>, "keys" | "check"> & {
  /** Keys of other programs that the same file may hold. */
  readonly alsoKnown?: ConfigKeys<unknown>;
};

/**
 * Load a configuration from its file, the environment and flags. Throws Failure that tells every problem, or UsageError
 * when all of them are flags'.
 */
export async function loadConfiguration<T>(
  wanted: WantedConfiguration<T>,
  { shell, file, flags }: ConfigurationSources,
): Promise<Config<T>> {
  const path = configurationPath(shell, file);
  const read = path === undefined ? undefined : await readNamedFile(shell, path);
  const result = loadConfig({
    ...wanted,
    ...(read === undefined ? {} : { foreign: await foreignKeysOf() }),
    env: withoutClientVariables(shell.env),
    flags,
    ...(read === undefined ? {} : { file: read }),
  });
  if (result.ok) return result.config;
  const text = `the configuration is not right:\n${formatProblems(result.problems)}`;
  // What stands on the command line is known to be wrong before anything was read or asked.
  const isUsage = result.problems.every(({ where }) => where?.startsWith("flag "));
  throw isUsage ? new UsageError(text) : new Failure(text);
}

/** Loaded only where there is a file: an agent without one need not spend the memory. */
export async function foreignKeysOf(): Promise<ForeignIndex> {
  const { foreignKeys } = await import("./foreign/foreign-keys.ts");
  return foreignKeys();
}

/** The file that counts: --config, else ROLLCALL_CONFIG; undefined for none. */
export function configurationPath({ env }: Pick<Shell, "env">, file: string | undefined): string | undefined {
  return file ?? (env.ROLLCALL_CONFIG || undefined);
}

/** Read a file as the user names it. Throws Failure. */
export async function readNamedFile({ cwd }: Pick<Shell, "cwd">, named: string): Promise<ConfigFile> {
  try {
    return { ...(await readConfigFile(resolve(cwd, named))), name: named };
  } catch (cause) {
    const why = isNativeError(cause) ? cause.message : String(cause);
    throw new Failure(`cannot read the configuration file ${named}: ${why}`, { cause });
  }
}

/** Variables that only clients read are no unknown keys of a server. */
function withoutClientVariables(env: Shell["env"]): Shell["env"] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !CLIENT_VARIABLES.includes(name)));
}
