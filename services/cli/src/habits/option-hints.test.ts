import { describe, expect, it } from "@jest/globals";
import { optionHint } from "./option-hints.ts";

const AGENT = {
  usage: "rollcall agent",
  options: [
    "server",
    "ca-file",
    "state-dir",
    "name",
    "join-token",
    "join-token-file",
    "label",
    "executors",
    "log-level",
  ],
};
const APPROVE = {
  usage: "rollcall node approve [node...]",
  options: ["labels", "selector", "yes", "message", "timeout"],
};
const SCALE = { usage: "rollcall job scale <job> <count>", options: ["message"] };
const WHY = { usage: "rollcall node why <node>", options: ["limit", "since", "server", "timeout"] };
const DRAIN = {
  usage: "rollcall node drain [node...]",
  options: ["deadline", "detach", "force", "max-parallel", "timeout"],
};

describe("optionHint()", () => {
  it.each([
    ["--replicas", SCALE, "give the count without an option: `rollcall job scale <job> <count>`"],
    ["--node-id", AGENT, "use `--name`"],
    ["--id=web-1", AGENT, "use `--name`"],
    ["--token", AGENT, "use `--join-token`"],
    ["--labels", AGENT, "use `--label`"],
    ["--data-dir", AGENT, "use `--state-dir`"],
    ["--address", AGENT, "use `--server`"],
    ["--force", APPROVE, "use `--yes`"],
    ["--reason", APPROVE, "use `--message`"],
    ["--tag", APPROVE, "use `--labels`"],
    ["--grace-period", DRAIN, "use `--deadline`"],
    ["--node", WHY, "give the name without an option: `rollcall node why <node>`"],
    ["--id", APPROVE, "give the name without an option: `rollcall node approve [node...]`"],
  ])("should find the counterpart of %s", (option, known, hint) => {
    expect(optionHint(option, known)).toBe(hint);
  });

  it.each([
    ["--namespace", "no namespaces"],
    ["--yes", "asks nothing"],
    ["--kubeconfig", "--context"],
    ["--insecure", "--ca-file"],
  ])("should say what to do instead of %s", (option, words) => {
    expect(optionHint(option, WHY)).toContain(words);
  });

  it("should guess nothing about other options", () => {
    expect(optionHint("--nonsense", WHY)).toBeNull();
    expect(optionHint("--id", { usage: "rollcall up", options: ["port"] })).toBeNull();
    expect(optionHint("--constructor", WHY)).toBeNull();
  });

  it("should not advise --force to those who only want to confirm", () => {
    expect(optionHint("--yes", DRAIN)).toContain("asks nothing");
  });
});
