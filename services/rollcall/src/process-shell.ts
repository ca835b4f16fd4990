import { homedir } from "node:os";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Shell, Sink } from "@rollcall/cli";

/** What of Node's process and of the user's signals the command line needs. */
export interface ProcessShell {
  readonly shell: Shell;
  /** Stop listening to signals: a verb that runs for long does so itself. */
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
  const shell: Shell = {
    args: process.argv.slice(2),
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    userId: process.getuid?.() ?? null,
    runsOn: { node: process.versions.node, platform: `${process.platform}-${process.arch}` },
    out: createSink(process, process.stdout),
    err: createSink(process, process.stderr),
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

/** More than any token has: what is longer is not one. */
const MOST_INPUT = 65_536;

async function readAll(input: NodeJS.ReadStream): Promise<string> {
  let text = "";
  for await (const chunk of input.setEncoding("utf8")) {
    text += chunk;
    if (text.length > MOST_INPUT) break;
  }
  return text;
}

function createSink(process: NodeJS.Process, stream: NodeJS.WriteStream): Sink {
  // `rollcall node list | head` closes the pipe early, and nothing is wrong.
  stream.on("error", (error: Error & { readonly code?: string }) => {
    process.exit(error.code === "EPIPE" ? 0 : 1);
  });
  return {
    write: (data) => void stream.write(data),
    isTerminal: stream.isTTY ?? false,
    columns: () => stream.columns ?? 0,
    rows: () => stream.rows ?? 0,
  };
}
