import { silentLogger } from "@rollcall/process";
import type { Ports } from "@rollcall/testkit/faults";
import { MemoryFiles } from "@rollcall/testkit/memory-files";
import { ManualClock } from "@rollcall/testkit/time";
import type { Executor, Program, ProgramContext } from "../execution/executor.ts";
import { type Execution, parseRecord } from "../journal/execution-entry.ts";
import { Journal } from "../journal/journal.ts";
import { Keeper } from "../keeper.ts";
import { SeenStamp } from "../seen-stamp.ts";
import type { Exit, Phase } from "../state/execution-state.ts";

const DIRECTORY = "/keeper";
const BOOT = "boot-1";

/** A step of virtual time, and the maximum number of steps of a wait. */
const STEP_MS = 500;
const MOST_STEPS = 60;

/** The calls that a program of the fake machine received, and its end. */
interface FakeProgram {
  /** Number of starts. A real executor refuses the second one. */
  starts: number;
  readonly signals: string[];
  checks: number;
  /** Whether one of its processes does not end. */
  isStuck: boolean;
  exit: Exit | null;
}

/**
 * A machine without processes. When a keeper is stopped, its files and the programs of its executions stay. A program
 * runs until it gets a signal, and ends immediately when it gets one.
 */
export class FakeMachine {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles();
  readonly #programs = new Map<string, FakeProgram>();

  /** What happened to the program of an execution. */
  program(id: string): FakeProgram {
    const found = this.#programs.get(id) ?? { starts: 0, signals: [], checks: 0, isStuck: false, exit: null };
    this.#programs.set(id, found);
    return found;
  }

  /** The record of an execution on disk; null if there is none. */
  stored(id: string): Execution | null {
    return parseRecord(this.files.textOf(`${DIRECTORY}/executions/${id}/record.json`));
  }

  /** Open a keeper. With `ports`, its files and programs are ports. */
  async open(ports?: Ports): Promise<Keeper> {
    const executor: Executor = {
      mostLaunching: 8,
      programOf: (context) => {
        const port = this.#portOf(context);
        return ports?.wrap("program", port, { except: ["abandon", "close"] }) ?? port;
      },
      survey: async () => () => true,
      end: async () => {},
      tidy: async () => {},
    };
    const { clock } = this;
    const keeper = await Keeper.open({
      journal: await Journal.open(DIRECTORY, ports?.wrap("files", this.files, { opens: ["open"] }) ?? this.files),
      executors: { process: executor, docker: executor },
      seen: await SeenStamp.open("/missing", BOOT, clock),
      ...{ clock, bootId: BOOT, log: silentLogger },
    });
    ports?.onStop(() => keeper.close());
    return keeper;
  }

  /** Let time pass until a condition holds. */
  async pass(what: string, isMet: () => boolean): Promise<void> {
    for (let step = 0; step < MOST_STEPS; step += 1) {
      await this.clock.pass(step === 0 ? 0 : STEP_MS);
      if (isMet()) return;
    }
    throw new Error(`waited ${(MOST_STEPS * STEP_MS) / 1_000} s of virtual time for ${what}`);
  }

  /** Let time pass until an execution is in this phase, and return it. */
  async phase<K extends Phase["kind"]>(
    keeper: Keeper,
    id: string,
    kind: K,
  ): Promise<Extract<Phase, { readonly kind: K }>> {
    await this.pass(`${kind} instead of ${phaseOf(keeper, id)?.kind}`, () => phaseOf(keeper, id)?.kind === kind);
    return phaseOf(keeper, id) as Extract<Phase, { readonly kind: K }>;
  }

  #portOf({ identity, onNotice }: ProgramContext): Program {
    const program = this.program(identity.id);
    const end = (signal: string): void => {
      if (program.starts === 0 || program.exit !== null) return;
      program.signals.push(signal);
      program.exit = { code: null, signal, memoryKill: { kind: "no" } };
      onNotice();
    };
    return {
      launch: async () => {
        program.starts += 1;
        onNotice();
        return { ok: true };
      },
      abandon: () => {},
      look: async () => {
        if (program.starts === 0) return { kind: "not-launched" };
        if (program.exit === null) return { kind: "runs", about: "" };
        return { kind: "exited", exit: program.exit, wallMs: null, about: "" };
      },
      checkAfterEnd: async () => {},
      signal: async (signal) => end(signal),
      kill: async () => end("SIGKILL"),
      check: async () => {
        program.checks += 1;
        return { passed: true, message: "" };
      },
      release: async () => !program.isStuck && (program.starts === 0 || program.exit !== null),
      remove: async () => {},
      close: () => {},
    };
  }
}

/** The phase of an execution; undefined if the keeper does not know it. */
export function phaseOf(keeper: Keeper, id: string): Phase | undefined {
  return keeper.records().find(({ identity }) => identity.id === id)?.state.phase;
}
