import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Execution } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { Failure } from "../failure.ts";
import { reasonIn } from "../hints.ts";
import type { choosePaint } from "../output/style.ts";
import { counted, pad, printable } from "../output/text.ts";
import { type Shell, SILENT_SINK } from "../shell.ts";
import type { OutputLabels } from "./output-labels.ts";
import { type LineFormat, OutputWriter, SharedSink } from "./output-writer.ts";
import { gapWords, type OneStream, type OutputWanted, readOutput } from "./read-output.ts";
import { isEnded } from "./words.ts";

export interface ScreenOptions {
  readonly streams: readonly OneStream[];
  readonly wanted: Omit<OutputWanted, "executionId">;
  readonly labels: OutputLabels;
  readonly paints: Record<"out" | "err", ReturnType<typeof choosePaint>>;
}

/** Shows the output of executions. Lines have a prefix once there is more than one execution. */
export class LogScreen {
  readonly #shell: Shell;
  readonly #control: ControlPlane;
  readonly #options: ScreenOptions;
  readonly #sinks: Record<"out" | "err", SharedSink>;
  readonly #unread: Failure[] = [];
  #isPrefixed = false;
  #shown = 0;
  #between = 0n;

  constructor(shell: Shell, control: ControlPlane, options: ScreenOptions) {
    this.#shell = shell;
    this.#control = control;
    this.#options = options;
    this.#sinks = { out: new SharedSink(shell.out), err: new SharedSink(shell.err) };
  }

  /** Print a line on standard error. */
  note(text: string): void {
    this.#sinks.err.note(printable(text));
  }

  /** From now on, start each line with the name of its execution. */
  usePrefixes(executions: readonly Execution[]): void {
    this.#isPrefixed = true;
    for (const execution of executions) this.#options.labels.of(execution);
  }

  /** Show the output of an execution to its end. Failures are printed immediately, and collected for finish(). */
  async show(execution: Execution, { isPatient = false } = {}): Promise<void> {
    const { streams, wanted, labels } = this.#options;
    const { id } = execution;
    this.#shown += 1;
    labels.of(execution);
    if (this.#shown > 1) this.#isPrefixed = true;
    const shell = { ...this.#shell, err: { ...SILENT_SINK, write: (text: string | Uint8Array) => this.#say(text) } };
    const writers = new Map(streams.map((stream) => [stream, this.#writerOf(execution, stream)]));
    try {
      const missing = await readOutput(
        shell,
        this.#control,
        { ...wanted, executionId: id },
        {
          ...{ writers, isPatient },
          onGap: (stream, gap) => this.note(gapWords(id, stream, gap)),
          onUnknownTime: () =>
            this.note(`the times of the output of execution ${id} are unknown: it may be older than --since`),
        },
      );
      this.#between += missing.between;
    } catch (error) {
      if (!(error instanceof Failure) || this.#shell.interrupted.aborted) throw error;
      // If several executions are shown, removed output of an ended one is not a failure: only a note is printed.
      const isRemoved = isEnded(execution) && reasonIn(error.cause) === ErrorReason.LOG_NOT_FOUND;
      if (!isRemoved || !this.#isPrefixed) this.#unread.push(error);
      if (this.#isPrefixed) this.note(error.message);
    }
  }

  /** Throws Failure when something could not be shown. */
  finish(): void {
    const [first] = this.#unread;
    if (first !== undefined && !this.#isPrefixed) throw first;
    if (first !== undefined) {
      throw new Failure(
        `the output of ${this.#unread.length} of ${counted(this.#shown, "execution")} could not be read`,
      );
    }
    if (this.#between > 0n) {
      const bytes = this.#between.toLocaleString("en-US");
      throw new Failure(`${bytes} bytes of output were removed before they were read; raise the job's output.maxFiles`);
    }
  }

  #say(text: string | Uint8Array): void {
    this.note(Buffer.from(text).toString().trimEnd());
  }

  #writerOf(execution: Execution, stream: OneStream): OutputWriter {
    const { labels, wanted, paints } = this.#options;
    const name = stream === OutputStream.STDERR ? "err" : "out";
    const label = labels.of(execution);
    const look = (): LineFormat => {
      const prefix = () => `${paints[name](label.style, `${pad(printable(label.text), labels.width)} |`)} `;
      return { prefix: this.#isPrefixed ? prefix() : null, hasTime: wanted.hasTimes };
    };
    return new OutputWriter(this.#sinks[name], look);
  }
}
