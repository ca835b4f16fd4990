import type { ZodMiniType } from "zod/mini";

export interface KeyDeclaration<T> {
  /**
   * Parses a written value; see value-types.ts (duration(), address(), ...). The input is a string, or a list or map
   * of strings.
   */
  readonly schema: ZodMiniType<T>;
  /** The value of an unset key, in parsed form. For example, a duration is in milliseconds. */
  readonly default: T;
  /** What the key is for, in full sentences, with its limits and related keys. */
  readonly doc: string;
  /** Older or foreign paths for the same key. They are accepted, and listed as aliases. */
  readonly aliases?: readonly string[];
  /** The command-line flag that sets the key, without leading dashes, for example "manual-approval". */
  readonly flag?: string;
  /** Further environment variables. The variable derived from ROLLCALL_ and the path takes precedence. */
  readonly env?: readonly string[];
  /** Whether the value is a secret. Secrets are shown neither in listings nor in messages. */
  readonly secret?: boolean;
  /** Whether the value names a file or directory. Relative paths are resolved against LoadOptions.cwd. */
  readonly isPath?: boolean;
}

/**
 * Declarations of keys, keyed by path such as "Orchestrator.NodeManager.ManualApproval". Use spread to combine
 * tables.
 */
export type ConfigKeys<T> = { readonly [P in keyof T]: KeyDeclaration<T[P]> };

/** The value types of a table of keys. */
export type ConfigValues<K> = K extends ConfigKeys<infer T> ? Readonly<T> : never;

/** Declare keys. The value types follow from the schemas. */
export function defineKeys<T extends Record<string, unknown>>(
  keys: {
    readonly [P in keyof T]: KeyDeclaration<T[P]>;
  },
): ConfigKeys<T> {
  return keys;
}

/** A key with its path, but without its value type. */
export interface DeclaredKey extends KeyDeclaration<unknown> {
  readonly path: string;
}

/** The keys of a table in the order of declaration. */
export function declaredKeys<T>(keys: ConfigKeys<T>): readonly DeclaredKey[] {
  return Object.entries<KeyDeclaration<unknown>>(keys).map(([path, key]) => ({ ...key, path }));
}

/** The environment variable for a path: ROLLCALL_ORCHESTRATOR_NODEMANAGER_MANUALAPPROVAL. */
export function environmentName(path: string): string {
  return `ROLLCALL_${path.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
}
