import { resolve } from "node:path";
import { parseSecretGrants, parseUserIds, type WorkConfig } from "@rollcall/agent";
import type { Config } from "@rollcall/config";
import type { KeeperSettings } from "@rollcall/keeper";

/** What a keeper does, as agent and keeper read it from the same configuration. */
export function keeperSettings(values: WorkConfig, stateDirectory: string): KeeperSettings {
  const userIds = parseUserIds(values["Work.UserIds"]);
  return {
    stateDirectory: resolve(stateDirectory),
    directory: values["Work.KeeperDir"] ?? null,
    executors: values["Work.Executors"],
    user: values["Work.User"] ?? null,
    // It was checked with the configuration.
    userIds: userIds.ok ? userIds.range : null,
    users: values["Work.Users"],
    directories: values["Work.Directories"],
    secrets: values["Work.Secrets"] ?? null,
    secretGrants: parseSecretGrants(values["Work.SecretGrants"]),
    mayBeOwnUser: values["Work.SameUser"],
    dockerHost: values["Work.Docker.Host"] ?? null,
  };
}

/** The flags by which a keeper is given these values, whatever its file and its environment say. */
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
 * What the agent of an `up` does about work where nothing is configured: it runs processes. An agent that is not root
 * cannot make them another user's, and runs none unless it may run them as its own.
 */
export function withDefaultsOfUp<T extends WorkConfig>(config: Config<T>, userId: number | null): T {
  const { values, origins } = config;
  const isSaid = (origins["Work.Executors"]?.source ?? "default") !== "default";
  if (isSaid || process.platform !== "linux" || (userId !== 0 && !values["Work.SameUser"])) return values;
  return { ...values, "Work.Executors": ["process"] };
}
