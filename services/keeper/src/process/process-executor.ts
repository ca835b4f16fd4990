import { Cgroup } from "../cgroup/cgroup.ts";
import type { Executor, Program, ProgramContext } from "../execution/executor.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";
import { ProcessProgram, type ProcessServices } from "./process-program.ts";

/** Runs processes of the machine. */
export class ProcessExecutor implements Executor<ProcessPlan> {
  /** Starting a process costs a few forks: more at once would only make all of them late. */
  readonly mostLaunching = 8;
  readonly #services: ProcessServices;

  constructor(services: ProcessServices) {
    this.#services = services;
  }

  programOf(context: ProgramContext<ProcessPlan>): Program {
    return new ProcessProgram(this.#services, context);
  }

  /** Each has its files, which are read as cheaply as any list of them. */
  async survey(): Promise<(id: string) => boolean> {
    return () => true;
  }

  async end(id: string): Promise<void> {
    const { cgroups } = this.#services;
    if (cgroups !== null) await new Cgroup(cgroups, id).end();
  }

  /** What a process leaves is in its own directories, which are removed with it. */
  async tidy(): Promise<void> {}
}
