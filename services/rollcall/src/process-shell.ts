import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { type Failure, type Shell, UsageError } from "@rollcall/cli";
import { homeDirectory, workingDirectory } from "@rollcall/process/own-directories";
import { ProcessSink } from "./process-sink.ts";

/** The parts of Node.js' process and of signal handling that the command line needs. */
export interface ProcessShell {
  readonly shell: Shell;
  /** Stop handling signals and failed writes, because a long-running verb handles both itself. */
  releaseSignals(): void;
}

const INTERRUPTED = 130;

/** The shell of this process. The first SIGINT or SIGTERM aborts the verb, the second ends the process. */
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
      // Abort the verb, because its further output would be lost.
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
    cwd: workingDirectory(),
    home: homeDirectory(),
    userId: process.getuid?.() ?? null,
    ...(process.platform === "linux" ? { processFolder: "/proc" } : {}),
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

/** Prompts go to standard error, so that pipes contain only output. */
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

/** Like createAsk(), but without echoing the input. */
function createAskSecret(process: NodeJS.Process, interrupted: AbortSignal): Shell["ask"] {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return null;
  return async (question) => {
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const lines = createInterface({ input: stdin, output: nowhere, terminal: true });
    // Send the signal explicitly, because in raw mode, the terminal sends no signal for Ctrl-C.
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

/** Maximum size of standard input in bytes. The declared state of one call needs less. */
const MOST_INPUT = 16_777_216;

/**
 * Read all input. Throws UsageError for longer input, because truncated declared state would mean that the rest is
 * no longer declared.
 */
async function readAll(input: NodeJS.ReadStream): Promise<string> {
  let text = "";
  for await (const chunk of input.setEncoding("utf8")) {
    text += chunk;
    if (text.length > MOST_INPUT) throw new UsageError("standard input is larger than 16 MiB; split it");
  }
  return text;
}
