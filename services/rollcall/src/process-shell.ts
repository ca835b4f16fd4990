import { homedir } from "node:os";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { type Failure, type Shell, UsageError } from "@rollcall/cli";
import { ProcessSink } from "./process-sink.ts";

/** What of Node's process and of the user's signals the command line needs. */
export interface ProcessShell {
  readonly shell: Shell;
  /** Leave signals, and logs that cannot be written, to a verb that runs for long: it ends where its output does. */
  releaseSignals(): void;
}

const INTERRUPTED = 130;

/** The shell of this process. The first SIGINT or SIGTERM asks the verb to end, the second ends the process. */
export function createProcessShell(process: NodeJS.Process): ProcessShell {
  const interrupted = new AbortController();
  const onSignal = () => {
    if (interrupted.signal.aborted) process.exit(INTERRUPTED);
    interrupted.abort(new Error("interrupted"));
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  let isReleased = false;
  const onFailure = (failure: Failure) => {
    if (!isReleased) {
      // Whatever is under way ends: its output is lost.
      interrupted.abort(failure);
      return;
    }
    err.write(`${failure.message}\n`);
    process.exit(1);
  };
  const out = new ProcessSink({ fd: 1, name: "standard output", stream: process.stdout, onFailure });
  const err = new ProcessSink({ fd: 2, name: "standard error", stream: process.stderr, onFailure });
  const shell: Shell = {
    args: process.argv.slice(2),
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    userId: process.getuid?.() ?? null,
    runsOn: { node: process.versions.node, platform: `${process.platform}-${process.arch}` },
    out,
    err,
    ask: createAsk(process, interrupted.signal),
    askSecret: createAskSecret(process, interrupted.signal),
    readInput: () => readAll(process.stdin),
    wallMs: () => Date.now(),
    interrupted: interrupted.signal,
  };
  return {
    shell,
    releaseSignals: () => {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
      isReleased = true;
    },
  };
}

/** Questions go to standard error, so that what is piped on holds answers alone. */
function createAsk(process: NodeJS.Process, interrupted: AbortSignal): Shell["ask"] {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return null;
  return async (question) => {
    const lines = createInterface({ input: stdin, output: stderr });
    try {
      return await lines.question(question, { signal: interrupted });
    } finally {
      lines.close();
    }
  };
}

/** As createAsk(), and what is typed is not shown. */
function createAskSecret(process: NodeJS.Process, interrupted: AbortSignal): Shell["ask"] {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return null;
  return async (question) => {
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const lines = createInterface({ input: stdin, output: nowhere, terminal: true });
    // While every key is read one by one, the terminal makes no signal of Ctrl-C.
    lines.on("SIGINT", () => process.emit("SIGINT"));
    stderr.write(question);
    try {
      return await lines.question("", { signal: interrupted });
    } finally {
      lines.close();
      stderr.write("\n");
    }
  };
}

/** More than all declared state of one call takes. */
const MOST_INPUT = 16_777_216;

/** Throws UsageError for a longer input: a part of declared state would mean that the rest is no longer declared. */
async function readAll(input: NodeJS.ReadStream): Promise<string> {
  let text = "";
  for await (const chunk of input.setEncoding("utf8")) {
    text += chunk;
    if (text.length > MOST_INPUT) throw new UsageError("standard input has more than 16 MiB; divide it");
  }
  return text;
}
