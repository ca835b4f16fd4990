import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Parts } from "../parts.ts";
import { runCli } from "../run-cli.ts";
import type { Shell, Sink } from "../shell.ts";
import { NOW_MS } from "./sample-nodes.ts";

/** What a command line left behind. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What a test may change of the process. */
export interface Surroundings {
  readonly env?: Shell["env"];
  readonly cwd?: string;
  readonly home?: string;
  readonly terminal?: { readonly columns: number; readonly rows: number };
  readonly interrupted?: AbortSignal;
  /** The wall clock; one that stands still when absent. */
  readonly wallMs?: () => number;
  /** Answers questions; without it there is no terminal. */
  readonly ask?: Shell["ask"];
  /** What comes on standard input. */
  readonly input?: string;
  readonly parts?: Partial<Parts>;
  /** Takes standard output; it is captured when absent. */
  readonly out?: Sink;
  /** Called after each write to standard output, with all that was written so far. */
  readonly onOutput?: (all: string) => void;
  /** The same for standard error. */
  readonly onError?: (all: string) => void;
}

/** Run a command line as a process would, against nothing but what is given. */
export async function run(args: readonly string[], surroundings: Surroundings = {}): Promise<Outcome> {
  const nowhere = join(tmpdir(), "rollcall-cli-test-nowhere");
  const out = capture(surroundings.terminal, surroundings.onOutput);
  const err = capture(surroundings.terminal, surroundings.onError);
  const shell: Shell = {
    args,
    env: surroundings.env ?? {},
    cwd: surroundings.cwd ?? nowhere,
    home: surroundings.home ?? nowhere,
    // As any user: root would read the system's directory, where a control plane of this machine may have its data.
    userId: null,
    runsOn: { node: "26.12.1", platform: "linux-x64" },
    out: surroundings.out ?? out.sink,
    err: err.sink,
    ask: surroundings.ask ?? null,
    readInput: async () => surroundings.input ?? "",
    wallMs: surroundings.wallMs ?? (() => NOW_MS),
    interrupted: surroundings.interrupted ?? new AbortController().signal,
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

/** Lines of a golden text, each ended. */
export function lines(...text: readonly string[]): string {
  return text.map((line) => `${line}\n`).join("");
}
