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

/** Number of surveys between two that check each execution, while the engine does not respond. */
const SURVEYS_BETWEEN_SCANS = 60;

export interface DockerExecutorOptions {
  readonly engine: DockerEngine;
  readonly rules: WorkRules;
  /** An id that is unique to the state directory. Each container has it as a label. */
  readonly keeper: string;
  readonly clock: MachineClock;
  readonly log: Logger;
}

/** Runs containers with this machine's engine. */
export class DockerExecutor implements Executor<ContainerPlan> {
  /**
   * Maximum number of executions to start at the same time. A start mostly waits for an image or for the engine,
   * and one large image must not block all others.
   */
  readonly mostLaunching = 64;
  readonly #options: DockerExecutorOptions;
  readonly #images: ImageStore;
  readonly #left = new Set<string>();
  /**
   * Whether the next survey must check all executions. True at the start, and after the engine did not respond,
   * because its list does not show past events.
   */
  #wasAway = true;
  #surveysAway = 0;
  /** Whether any execution on this machine is or was a container. */
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

  /**
   * List all containers in one call, because inspecting each would take the engine longer than the interval
   * between scans.
   */
  async survey(): Promise<(id: string) => boolean> {
    const listed = await this.#list();
    if (listed === null) {
      this.#wasAway = true;
      this.#surveysAway += 1;
      // Still check each execution now and then. Executions of an earlier boot have ended, and must be reported even if
      // the engine never responds.
      const isDue = this.#surveysAway % SURVEYS_BETWEEN_SCANS === 0;
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
   * Remove the containers of forgotten executions, and stopped containers of unknown ones. Keep a running
   * container of an unknown execution: the journal may have been lost, so the operator decides. Also remove a
   * running container of an ended execution: the engine did not respond when the container should have been
   * stopped.
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

  /** List the keeper's containers; null when the engine does not respond. */
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
      // Ignore the error, because the container is gone, or the next tidy() tries again.
      if (statusOf(error) !== 404) log.warn({ err: error, container: Id }, "cannot remove container");
    }
  }

  #tellLeft(container: Docker.ContainerInfo): void {
    if (this.#left.has(container.Id)) return;
    this.#left.add(container.Id);
    const facts = { container: container.Id, execution_id: executionOf(container) };
    this.#options.log.warn(facts, "container of an unknown execution is running; left unchanged");
  }
}

function executionOf({ Labels }: Docker.ContainerInfo): string {
  return Labels[LABELS.execution] ?? "";
}
