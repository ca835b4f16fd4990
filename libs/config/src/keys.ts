import type { ZodMiniType } from "zod/mini";

/** One key of the configuration. */
export interface KeyDeclaration<T> {
  /**
   * What may be written; see value-types.ts (duration(), address(), ...). It is given texts, lists and maps of texts.
   */
  readonly schema: ZodMiniType<T>;
  /** The value when nothing is set, in its read form: durations in milliseconds. */
  readonly default: T;
  /** What it is for, in full sentences; with limits and with what it relates to. */
  readonly doc: string;
  /** Older or foreign paths that mean the same. They are accepted, and shown as aliases. */
  readonly aliases?: readonly string[];
  /** The command-line flag that sets it, without dashes in front, for example "manual-approval". */
  readonly flag?: string;
  /** Further environment variables, besides ROLLCALL_ and the path; the latter wins. */
  readonly env?: readonly string[];
  /** Never shown: neither in listings nor in messages. */
  readonly secret?: boolean;
}

/** Keys by path, for example "Orchestrator.NodeManager.ManualApproval"; tables are joined by spreading. */
export type ConfigKeys<T> = { readonly [P in keyof T]: KeyDeclaration<T[P]> };

/** The type of the values of a table of keys. */
export type ConfigValues<K> = K extends ConfigKeys<infer T> ? Readonly<T> : never;

/** Declare keys; the types of the values follow from the schemas. */
export function defineKeys<T extends Record<string, unknown>>(
  keys: {
    readonly [P in keyof T]: KeyDeclaration<T[P]>;
  },
): ConfigKeys<T> {
  return keys;
}

/** A key with its path, its type forgotten: what the machinery works on. */
export interface DeclaredKey extends KeyDeclaration<unknown> {
  readonly path: string;
}

/** The keys of a table in the order of their declaration. */
export function declaredKeys<T>(keys: ConfigKeys<T>): readonly DeclaredKey[] {
  return Object.entries<KeyDeclaration<unknown>>(keys).map(([path, key]) => ({ ...key, path }));
}

/** The environment variable of a path: ROLLCALL_ORCHESTRATOR_NODEMANAGER_MANUALAPPROVAL. */
export function environmentName(path: string): string {
  return `ROLLCALL_${path.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
}
