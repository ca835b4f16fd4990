import { describe, expect, it } from "@jest/globals";
import type { Command } from "commander";
import { NOUNS } from "../all-nouns.ts";
import { createProgram } from "../program.ts";
import { type Shell, SILENT_SINK } from "../shell.ts";
import { argumentSource, optionSource, optionWords } from "./values.ts";

const SHELL: Shell = {
  ...{ args: [], env: {}, cwd: "/", home: "/", userId: 1, out: SILENT_SINK, err: SILENT_SINK, ask: null },
  ...{ runsOn: { node: "26", platform: "x" }, wallMs: () => 0, interrupted: new AbortController().signal },
};

/** Placeholders of files, and of values that only the user knows, such as amounts, times and texts. */
const FREE = new Set([
  ...["address", "bytes", "celsius", "count", "duration", "etag", "fingerprint", "frames", "hold", "id", "image"],
  ...["lines", "name=value", "number", "path", "pattern", "priority", "reason", "revision", "seq:hash", "sequence"],
  ...["sha256", "start", "text", "time", "token", "url", "user", "words", "name", "file"],
]);

/** Arguments that are files, or whose values only the user knows. */
const FREE_ARGUMENTS = new Set(["file", "count", "command", "name", "new-name"]);

async function commands(): Promise<readonly Command[]> {
  const parts = { verbs: [], configuration: { list: never, defaultYaml: never, convert: never } };
  const programs = await Promise.all(NOUNS.map(({ name }) => createProgram(SHELL, parts, [name])));
  return programs.flatMap((program) => [program, ...program.commands.flatMap((noun) => [noun, ...noun.commands])]);
}

function never(): never {
  throw new Error("completion does not read the configuration");
}

describe("completion", () => {
  it("should offer values for every option, unless only the user knows them", async () => {
    const missing = (await commands()).flatMap((command) =>
      command.options
        .filter(({ required, long, flags }) => {
          const placeholder = /<([^>.]+)/.exec(flags)?.[1] ?? "";
          const offered = [...optionWords(command, long ?? ""), ...optionSource(command, long ?? "")];
          return required && offered.length === 0 && !FREE.has(placeholder);
        })
        .map(({ flags }) => `${command.parent?.name()} ${command.name()} ${flags}`),
    );
    expect(missing).toEqual([]);
  });

  it("should offer values for every argument, unless only the user knows them", async () => {
    const missing = (await commands()).flatMap((command) =>
      command.registeredArguments
        .map((argument) => argument.name())
        .filter((name) => argumentSource(command, name) === null && !FREE_ARGUMENTS.has(name))
        .map((name) => `${command.parent?.name()} ${command.name()} ${name}`),
    );
    expect(missing).toEqual([]);
  });
});
