import { describe, expect, it } from "@jest/globals";
import { UsageError } from "@rollcall/cli";
import { bool, defineKeys, int, stringMap, text } from "@rollcall/config";
import { readArguments } from "./read-arguments.ts";

const KEYS = defineKeys({
  "A.Port": { schema: int(), default: 1, flag: "port", doc: "A port." },
  "A.Switch": { schema: bool(), default: true, flag: "switch", doc: "A switch." },
  "A.Label": { schema: stringMap(), default: {}, flag: "label", doc: "Labels." },
  "A.Hidden": { schema: text(), default: "x", doc: "No flag." },
});
const read = (line: string) => readArguments(line.split(" ").filter(Boolean), KEYS);

describe("readArguments()", () => {
  it.each([
    ["--port 7", { port: "7" }],
    ["--port=7", { port: "7" }],
    ["--port 7 --port 8", { port: "8" }],
    ["--switch", { switch: "true" }],
    ["--no-switch", { switch: "false" }],
    ["--switch=no", { switch: "no" }],
    ["--switch --port 7", { switch: "true", port: "7" }],
    ["--label a=b --label c=d", { label: "a=b,c=d" }],
    ["--set A.Hidden=x=y", { "A.Hidden": "x=y" }],
    ["--set A.Hidden=", { "A.Hidden": "" }],
  ])("should read %s", (line, flags) => {
    expect(read(line)).toEqual({ flags, file: undefined, help: false, words: [] });
  });

  it("should separate the file, the help flag and the words", () => {
    expect(read("registry --config a.yaml -h")).toEqual({
      flags: {},
      file: "a.yaml",
      help: true,
      words: ["registry"],
    });
  });

  it.each([
    ["--prt 7", "unknown option '--prt'\n(Did you mean --port?)"],
    ["--http-port 7", "unknown option '--http-port'\nhint: use `--port`"],
    ["--no-port", "unknown option '--no-port'"],
    ["--no-switch=yes", "unknown option '--no-switch'"],
    ["-p 7", "unknown option '-p'"],
    ["--port", "option '--port' requires a value"],
    ["--set A.Hidden", "cannot use 'A.Hidden' as set value, should be KEY=VALUE"],
  ])("should refuse %s", (line, message) => {
    expect(() => read(line)).toThrow(new UsageError(message));
  });
});
