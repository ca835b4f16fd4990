import { describe, expect, it } from "@jest/globals";
import { workKeys } from "@rollcall/agent";
import { type Flags, loadConfig } from "@rollcall/config";
import { settingsDigest } from "@rollcall/keeper";
import { readArguments } from "../config/read-arguments.ts";
import { keeperFlags, keeperSettings, withDefaultsOfUp } from "./keeper-settings.ts";

const ROOT = 0;
const USER = 1000;

function load(flags: Flags = {}) {
  const result = loadConfig({ keys: workKeys, flags });
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join());
  return result.config;
}

describe("withDefaultsOfUp()", () => {
  it.each<[string, Flags, number, readonly string[], string | undefined]>([
    ["as root", {}, ROOT, ["process"], undefined],
    ["as root with a user", { "work-user": "web" }, ROOT, ["process"], "web"],
    ["as root that says none", { "Work.Executors": "" }, ROOT, [], undefined],
    ["as another user", {}, USER, [], undefined],
    ["as another user that takes the risk", { "work-same-user": true }, USER, ["process"], undefined],
  ])("should choose executors and user %s", (_, flags, userId, executors, user) => {
    const values = withDefaultsOfUp(load(flags), userId);
    expect(values["Work.Executors"]).toEqual(executors);
    expect(values["Work.User"]).toBe(user);
  });
});

describe("keeperSettings()", () => {
  it("should change the digest when grants of secrets change, so that an agent replaces its keeper", () => {
    const digestWith = (grants: string) => {
      const flags = { "Work.Secrets": "/etc/secrets", "Work.SecretGrants": grants };
      return settingsDigest(keeperSettings(load(flags).values, "/state"));
    };
    const grants = ["password=token:ci/web", "password=token:ci/*", "key=token:ci/web"];
    expect(new Set(grants.map(digestWith)).size).toBe(3);
    expect(digestWith("password=token:ci/web")).toBe(digestWith("password=token:ci/web"));
  });
});

describe("keeperFlags()", () => {
  it("should give a keeper the settings that its agent has", () => {
    const { values } = load({
      executors: "process,docker",
      "docker-host": "unix:///run/engine.sock",
      "work-user": "web",
      "Work.Users": "batch,daemon",
      "Work.UserIds": "100000-100999",
      "Work.Directories": "/srv,/data",
      "Work.Secrets": "/etc/secrets",
      "Work.SecretGrants": "password=token:ci/web token:ops/*,key=*/backup",
      "work-same-user": true,
    });
    const { flags } = readArguments([...keeperFlags(values)], workKeys);
    expect(keeperSettings(load(flags).values, "/state")).toEqual(keeperSettings(values, "/state"));
  });
});
