import { resolve } from "node:path";
import { CLIENT_VARIABLES, type Shell, UsageError, unreadableFile } from "@rollcall/cli";
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

/** The sources of a configuration. */
export interface ConfigurationSources {
  readonly shell: Pick<Shell, "env" | "cwd">;
  /** The value of --config; ROLLCALL_CONFIG when absent. */
  readonly file: string | undefined;
  readonly flags: Flags;
}

/** Which configuration to load. */
export type WantedConfiguration<T> = Pick<LoadOptions<T>, "keys" | "check"> & {
  /** Keys of other programs that the file can contain. */
  readonly alsoKnown?: ConfigKeys<unknown>;
};

/** Load a configuration from its file, the environment and flags. Throws a UsageError that lists every problem. */
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
    cwd: shell.cwd,
    ...(read === undefined ? {} : { file: read }),
  });
  if (result.ok) return result.config;
  throw new UsageError(`invalid configuration:\n${formatProblems(result.problems)}`);
}

/** Load the keys of other programs only when there is a file, to save memory in agents without a file. */
export async function foreignKeysOf(): Promise<ForeignIndex> {
  const { foreignKeys } = await import("./foreign/foreign-keys.ts");
  return foreignKeys();
}

/** The configuration file: --config, otherwise ROLLCALL_CONFIG; undefined for none. */
export function configurationPath({ env }: Pick<Shell, "env">, file: string | undefined): string | undefined {
  return file ?? (env.ROLLCALL_CONFIG || undefined);
}

/** Read a file that the user named. Throws UsageError. */
export async function readNamedFile({ cwd }: Pick<Shell, "cwd">, named: string): Promise<ConfigFile> {
  try {
    return { ...(await readConfigFile(resolve(cwd, named))), name: named };
  } catch (cause) {
    throw unreadableFile(named, cause, "the configuration file");
  }
}

/** Remove variables that only clients read, because servers would report them as unknown keys. */
function withoutClientVariables(env: Shell["env"]): Shell["env"] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !CLIENT_VARIABLES.includes(name)));
}
