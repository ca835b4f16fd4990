import { resolve } from "node:path";
import type { WorkConfig } from "@rollcall/agent";
import type { Config } from "@rollcall/config";
import type { KeeperSettings } from "@rollcall/keeper";

/** What a keeper does, as agent and keeper read it from the same configuration. */
export function keeperSettings(values: WorkConfig, stateDirectory: string): KeeperSettings {
  return {
    stateDirectory: resolve(stateDirectory),
    directory: values["Work.KeeperDir"] ?? null,
    executors: values["Work.Executors"],
    user: values["Work.User"] ?? null,
    users: values["Work.Users"],
    directories: values["Work.Directories"],
    secrets: values["Work.Secrets"] ?? null,
    mayBeOwnUser: values["Work.SameUser"],
  };
}

/** The flags by which a keeper is given these values, whatever its file and its environment say. */
export function keeperFlags(values: WorkConfig): readonly string[] {
  const lists = ["Work.Executors", "Work.Users", "Work.Directories"] as const;
  const texts = ["Work.User", "Work.Secrets", "Work.SameUser"] as const;
  const pairs = [
    ...lists.map((key) => [key, values[key].join(",")] as const),
    ...texts.map((key) => [key, values[key] === undefined ? "" : String(values[key])] as const),
  ];
  return pairs.flatMap(([key, value]) => (value === "" ? [] : ["--set", `${key}=${value}`]));
}

/** The user of executions that `up` chooses as root, where its user has chosen none. Every system has it. */
const UP_USER = "nobody";

/**
 * What the agent of an `up` does about work where nothing is configured: it runs processes. An agent that is not root
 * cannot make them another user's, and runs none unless it may run them as its own.
 */
export function withDefaultsOfUp<T extends WorkConfig>(config: Config<T>, userId: number | null): T {
  const { values, origins } = config;
  const isSaid = (key: keyof WorkConfig): boolean => (origins[key]?.source ?? "default") !== "default";
  const isOwnUser = values["Work.SameUser"];
  if (isSaid("Work.Executors") || process.platform !== "linux" || (userId !== 0 && !isOwnUser)) return values;
  const user = isOwnUser || isSaid("Work.User") ? values["Work.User"] : UP_USER;
  return { ...values, "Work.Executors": ["process"], "Work.User": user };
}
