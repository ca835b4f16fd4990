import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { GROUPS } from "../all-nouns.ts";
import type { Parts } from "../parts.ts";
import { runCli } from "../run-cli.ts";
import type { Shell, Sink } from "../shell.ts";
import { NOW_MS } from "./sample-nodes.ts";

/** The result of a command line. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The properties of the process that a test can change. */
export interface Surroundings {
  readonly env?: Shell["env"];
  readonly cwd?: string;
  readonly home?: string;
  readonly terminal?: { readonly columns: number; readonly rows: number };
  readonly interrupted?: AbortSignal;
  readonly streamLimits?: Shell["streamLimits"];
  /** When progress is shown on a terminal; never if absent. */
  readonly progressAfterMs?: number;
  /** The wall clock; a fixed time if absent. */
  readonly wallMs?: () => number;
  /** Answers questions. Without it, the shell has no terminal. */
  readonly ask?: Shell["ask"];
  /** The contents of standard input. */
  readonly input?: string;
  readonly parts?: Partial<Parts>;
  /** Receives standard output; captured if absent. */
  readonly out?: Sink;
  /** Called after each write to standard output, with everything written so far. */
  readonly onOutput?: (all: string) => void;
  /** Called after each write to standard error, with everything written so far. */
  readonly onError?: (all: string) => void;
}

/** Run a command line as a process would, with only the given surroundings. */
export async function run(args: readonly string[], surroundings: Surroundings = {}): Promise<Outcome> {
  const nowhere = join(tmpdir(), "rollcall-cli-test-nowhere");
  const out = capture(surroundings.terminal, surroundings.onOutput);
  const err = capture(surroundings.terminal, surroundings.onError);
  const shell: Shell = {
    args,
    env: surroundings.env ?? {},
    cwd: surroundings.cwd ?? nowhere,
    home: surroundings.home ?? nowhere,
    // Run as an ordinary user, because root would read the system's directory, where a control plane of this
    // machine may keep its data.
    userId: null,
    runsOn: { node: "26.12.1", platform: "linux-x64" },
    out: surroundings.out ?? out.sink,
    err: err.sink,
    ask: surroundings.ask ?? null,
    readInput: async () => surroundings.input ?? "",
    wallMs: surroundings.wallMs ?? (() => NOW_MS),
    interrupted: surroundings.interrupted ?? new AbortController().signal,
    progressAfterMs: surroundings.progressAfterMs ?? Number.POSITIVE_INFINITY,
    ...(surroundings.streamLimits === undefined ? {} : { streamLimits: surroundings.streamLimits }),
  };
  const parts: Parts = {
    verbs: [],
    configuration: {
      list: async () => ({ settings: [], problems: [], warnings: [] }),
      defaultYaml: async () => "",
      convert: async () => ({ settings: [], leftAside: [], yaml: "" }),
    },
    ...surroundings.parts,
  };
  const code = await runCli(shell, parts);
  return { code, out: out.text(), err: err.text() };
}

function capture(terminal: Surroundings["terminal"], onWrite?: (all: string) => void) {
  let all = "";
  const sink: Sink = {
    write: (data) => {
      all += typeof data === "string" ? data : Buffer.from(data).toString();
      onWrite?.(all);
    },
    finish: async () => {},
    taken: async () => {},
    isTerminal: terminal !== undefined,
    columns: () => terminal?.columns ?? 0,
    rows: () => terminal?.rows ?? 0,
  };
  return { sink, text: () => all };
}

/** Wait until a condition holds. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(1);
}

/** Text with "|" where a progress line begins or is removed. */
export function progressIn(text: string): string {
  return text.replaceAll("\r\u001b[K", "|");
}

/** The lines of a golden text, each with a line break. */
export function lines(...text: readonly string[]): string {
  return text.map((line) => `${line}\n`).join("");
}

/** The names of the commands that a help text lists, without `help`. */
export function commandsIn(help: string): readonly string[] {
  const headings = ["Commands:", ...Object.values(GROUPS)];
  const blocks = headings.flatMap((heading) => help.split(`\n${heading}\n`)[1]?.split("\n\n")[0] ?? []);
  const names = blocks.flatMap((lines) => [...lines.matchAll(/^ {2}([a-z-]+)/gm)]);
  return names.map(([, name = ""]) => name).filter((name) => name !== "help");
}
