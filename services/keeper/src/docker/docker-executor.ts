import type { Logger } from "@rollcall/process";
import type Docker from "dockerode";
import type { Executor, Program, ProgramContext, Standing } from "../execution/executor.ts";
import type { MachineClock } from "../execution/keeper-services.ts";
import type { WorkRules } from "../launch/permissions.ts";
import type { ContainerPlan } from "../spec/read-spec.ts";
import { ContainerProgram } from "./container-program.ts";
import { LABELS } from "./container-settings.ts";
import { type DockerEngine, statusOf } from "./docker-engine.ts";
import { ImageStore } from "./image-store.ts";

/** While the engine is away, executions are looked at in one of so many surveys. */
const SURVEYS_BETWEEN_LOOKS = 60;

/** What a docker executor is made of. */
export interface DockerExecutorOptions {
  readonly engine: DockerEngine;
  readonly rules: WorkRules;
  /** Of the state directory alone: the containers of its keepers bear it. */
  readonly keeper: string;
  readonly clock: MachineClock;
  readonly log: Logger;
}

/** Runs containers, by the engine of this machine. */
export class DockerExecutor implements Executor<ContainerPlan> {
  /** Most of a start is waiting for an image or for the engine: one large image must not hold up all others. */
  readonly mostLaunching = 64;
  readonly #options: DockerExecutorOptions;
  readonly #images: ImageStore;
  readonly #left = new Set<string>();
  /** Whether all executions are to be looked at: what happened meanwhile, no list tells. */
  #wasAway = true;
  #surveysAway = 0;
  /** Whether anything here is, or was, a container. */
  #isUsed = false;

  constructor(options: DockerExecutorOptions) {
    this.#options = options;
    this.#images = new ImageStore(options.engine);
    this.#isUsed = options.rules.executors.includes("docker");
  }

  programOf(context: ProgramContext<ContainerPlan>): Program {
    this.#isUsed = true;
    return new ContainerProgram({ ...this.#options, images: this.#images }, context);
  }

  /** One list for all: to inspect each would take the engine longer than the time between two looks. */
  async survey(): Promise<(id: string) => boolean> {
    const listed = await this.#list();
    if (listed === null) {
      this.#wasAway = true;
      this.#surveysAway += 1;
      // Now and then, since what ran in another boot is over whether the engine answers or not.
      const isDue = this.#surveysAway % SURVEYS_BETWEEN_LOOKS === 0;
      return () => isDue;
    }
    this.#surveysAway = 0;
    const wasAway = this.#wasAway;
    this.#wasAway = false;
    const running = new Set(listed.filter(({ State }) => State === "running").map(executionOf));
    return (id) => wasAway || !running.has(id);
  }

  async end(id: string): Promise<void> {
    if (!this.#isUsed) return;
    for (const container of (await this.#list()) ?? [])
      if (executionOf(container) === id) await this.#remove(container);
  }

  /**
   * Remove containers of executions that were forgotten, and those of none that do not run. One of no execution that
   * runs is left alone: where the journal was lost, a person decides. One that runs although its execution has ended
   * could not be ended then, since the engine did not answer.
   */
  async tidy(standing: (id: string) => Standing): Promise<void> {
    if (!this.#isUsed) return;
    for (const container of (await this.#list()) ?? []) {
      const id = executionOf(container);
      switch (standing(id)) {
        case "kept":
          break;
        case "ended":
          if (container.State === "running") await this.#remove(container);
          break;
        case "forgotten":
          await this.#remove(container);
          break;
        case "unknown":
          if (container.State !== "running") await this.#remove(container);
          else this.#tellLeft(container);
          break;
      }
    }
  }

  /** Null when the engine does not answer. */
  async #list(): Promise<readonly Docker.ContainerInfo[] | null> {
    const { engine, keeper } = this.#options;
    try {
      const client = await engine.client("quick");
      return await client.listContainers({ all: true, filters: { label: [`${LABELS.keeper}=${keeper}`] } });
    } catch (error) {
      if (statusOf(error) === null) return null;
      throw error;
    }
  }

  async #remove({ Id }: Docker.ContainerInfo): Promise<void> {
    const { engine, log } = this.#options;
    try {
      await (await engine.client("slow")).getContainer(Id).remove({ force: true, v: true });
    } catch (error) {
      // It is gone, or the next tidying tries again.
      if (statusOf(error) !== 404) log.warn({ err: error, container: Id }, "container cannot be removed");
    }
  }

  #tellLeft(container: Docker.ContainerInfo): void {
    if (this.#left.has(container.Id)) return;
    this.#left.add(container.Id);
    const facts = { container: container.Id, execution_id: executionOf(container) };
    this.#options.log.warn(facts, "container of an execution that is not known runs, it is left alone");
  }
}

function executionOf({ Labels }: Docker.ContainerInfo): string {
  return Labels[LABELS.execution] ?? "";
}
