import { resolve } from "node:path";
import { parseSecretGrants, parseUserIds, type WorkConfig } from "@rollcall/agent";
import type { Config } from "@rollcall/config";
import type { KeeperSettings } from "@rollcall/keeper";

/** The keeper's settings. Agent and keeper read them from the same configuration. */
export function keeperSettings(values: WorkConfig, stateDirectory: string): KeeperSettings {
  const userIds = parseUserIds(values["Work.UserIds"]);
  return {
    stateDirectory: resolve(stateDirectory),
    directory: values["Work.KeeperDir"] ?? null,
    executors: values["Work.Executors"],
    user: values["Work.User"] ?? null,
    // The value is valid, because the configuration has already been validated.
    userIds: userIds.ok ? userIds.range : null,
    users: values["Work.Users"],
    directories: values["Work.Directories"],
    secrets: values["Work.Secrets"] ?? null,
    secretGrants: parseSecretGrants(values["Work.SecretGrants"]),
    mayBeOwnUser: values["Work.SameUser"],
    dockerHost: values["Work.Docker.Host"] ?? null,
  };
}

/** The flags that pass these values to a keeper, so that its file and environment do not matter. */
export function keeperFlags(values: WorkConfig): readonly string[] {
  const lists = ["Work.Executors", "Work.Users", "Work.Directories"] as const;
  const texts = ["Work.User", "Work.UserIds", "Work.Secrets", "Work.SameUser", "Work.Docker.Host"] as const;
  const pairs = [
    ...lists.map((key) => [key, values[key].join(",")] as const),
    ["Work.SecretGrants", pairsOf(values["Work.SecretGrants"])] as const,
    ...texts.map((key) => [key, values[key] === undefined ? "" : String(values[key])] as const),
  ];
  return pairs.flatMap(([key, value]) => (value === "" ? [] : ["--set", `${key}=${value}`]));
}

function pairsOf(map: Readonly<Record<string, string>>): string {
  return Object.entries(map)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

/**
 * The defaults for the agent of an `up`, which runs processes. Without root, the agent cannot run them as
 * another user. In that case, it runs none, unless running them as its own user is allowed.
 */
export function withDefaultsOfUp<T extends WorkConfig>(config: Config<T>, userId: number | null): T {
  const { values, origins } = config;
  const isSaid = (origins["Work.Executors"]?.source ?? "default") !== "default";
  if (isSaid || process.platform !== "linux" || (userId !== 0 && !values["Work.SameUser"])) return values;
  return { ...values, "Work.Executors": ["process"] };
}
