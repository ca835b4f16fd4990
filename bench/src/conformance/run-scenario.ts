import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { AgentProcess, type Candidate } from "./agent-process.ts";
import { type PlaneEvent, type Scenario, type Step, says } from "./scenario.ts";
import { ScriptedPlane } from "./scripted-plane.ts";

/** The result of a scenario. */
export interface Outcome {
  readonly scenario: string;
  readonly passed: boolean;
  readonly tookMs: number;
  /** Why the scenario failed, for people. Each entry is one line. */
  readonly problems: readonly string[];
}

/** The failure of a step that did not happen in time. */
class StepFailed extends Error {}

/** Where a scenario runs, and how long it waits. */
export interface Surroundings {
  /** The folder in which each scenario gets its own folder. That folder is removed afterwards. */
  readonly root: string;
  /**
   * The time limit for the agent's next action, in addition to the delay that the step requires before the action.
   */
  readonly withinMs: number;
}

/** Run a scenario with a fresh agent. */
export async function runScenario(
  scenario: Scenario,
  candidate: Candidate,
  { root, withinMs }: Surroundings,
): Promise<Outcome> {
  const folder = join(root, scenario.name);
  // If root runs the agent, executions run as another user. That user must be able to traverse the folder.
  await mkdir(folder, { recursive: true, mode: 0o711 });
  const plane = new ScriptedPlane(scenario);
  await plane.listen();
  const agent = new AgentProcess({
    candidate,
    folder,
    server: `127.0.0.1:${plane.registryPort}`,
    onExit: (code) => plane.note("exit", { code }),
  });
  const startMs = performance.now();
  const problems: string[] = [];
  try {
    await new ScenarioRun(plane, agent, withinMs).run(scenario.steps);
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    problems.push(error.message, `it saw: ${tailOf(plane.events)}`, `it said: ${await agent.lastWords()}`);
  } finally {
    await agent.end();
    plane.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
  problems.unshift(...new Set(plane.broken));
  const tookMs = performance.now() - startMs;
  return { scenario: scenario.name, passed: problems.length === 0, tookMs, problems };
}

class ScenarioRun {
  readonly #plane: ScriptedPlane;
  readonly #agent: AgentProcess;
  readonly #withinMs: number;
  readonly #kept = new Map<string, unknown>();
  #wake: () => void = () => {};
  /** The index of the first event that no step has awaited yet. */
  #cursor = 0;
  /**
   * When the script last did something. Times are measured from this moment and not from events, because events
   * arrive late on a busy machine.
   */
  #actedAtMs = performance.now();

  constructor(plane: ScriptedPlane, agent: AgentProcess, withinMs: number) {
    this.#plane = plane;
    this.#agent = agent;
    this.#withinMs = withinMs;
    plane.onEvent(() => this.#wake());
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const [index, step] of steps.entries()) {
      try {
        await this.#step(step);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new StepFailed(`step ${index + 1}, ${JSON.stringify(step)}: ${message}`);
      }
    }
  }

  async #step(step: Step): Promise<void> {
    const plane = this.#plane;
    if (step.await !== undefined) return this.#await(step);
    if (step.quiet !== undefined) return this.#quiet(step.quiet, step.forbid ?? []);
    // Earlier events cannot be a response to this step.
    this.#cursor = plane.events.length;
    if (step.send !== undefined) plane.send(this.#filled(step.send), step.on);
    else if (step.sendBytes !== undefined) plane.sendBytes(Buffer.from(step.sendBytes, "base64"));
    else if (step.end !== undefined) plane.end(step.end);
    else if (step.set !== undefined) plane.set(step.set);
    else if (step.clock !== undefined) await this.#agent.setClock(step.clock);
    else if (step.agent !== undefined) await this.#order(step.agent);
    else throw new Error("a step without an action");
    this.#actedAtMs = performance.now();
  }

  async #order(order: NonNullable<Step["agent"]>): Promise<void> {
    switch (order) {
      case "start":
        return this.#agent.start();
      case "clone":
        return this.#agent.clone();
      case "suspend":
        return this.#agent.signal("SIGSTOP");
      case "resume":
        return this.#agent.signal("SIGCONT");
      case "stop":
      case "kill":
        this.#agent.signal(order === "stop" ? "SIGTERM" : "SIGKILL");
        if (order === "kill") await this.#await({ await: "exit" });
    }
  }

  async #await(step: Step): Promise<void> {
    const { count = 1, notBeforeMs = 0, forbid = [] } = step;
    const endMs = performance.now() + notBeforeMs + this.#withinMs;
    const where = step.where && this.#filled(step.where);
    let found = 0;
    for (;;) {
      if (this.#plane.broken.length > 0) throw new Error("a rule was broken during the step");
      const event = this.#plane.events[this.#cursor];
      if (event === undefined) {
        await this.#changed(endMs);
        continue;
      }
      this.#cursor += 1;
      if (event.kind === step.await && (where === undefined || says(event.says, where))) {
        found += 1;
        if (found < count) continue;
        const tookMs = event.atMs - this.#actedAtMs;
        if (tookMs < notBeforeMs) throw new Error(`it came after ${Math.round(tookMs)} ms`);
        for (const [name, field] of Object.entries(step.keep ?? {})) this.#kept.set(name, event.says[field]);
        return;
      }
      if (forbid.includes(event.kind)) throw new Error(`${event.kind} came before it: ${JSON.stringify(event.says)}`);
    }
  }

  async #quiet(forMs: number, forbid: readonly string[]): Promise<void> {
    const from = this.#cursor;
    const endMs = performance.now() + forMs;
    await delay(forMs);
    const meanwhile = this.#plane.events.slice(from).filter(({ atMs }) => atMs <= endMs);
    const wrong = meanwhile.find(({ kind }) => forbid.includes(kind));
    if (wrong !== undefined) throw new Error(`${wrong.kind}: ${JSON.stringify(wrong.says)}`);
    this.#cursor = from + meanwhile.length;
  }

  async #changed(endMs: number): Promise<void> {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) throw new Error("it did not happen in time");
    const over = new AbortController();
    const late = delay(leftMs, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([late, new Promise<void>((resolve) => (this.#wake = resolve))]);
    over.abort();
  }

  #filled(json: JsonObject): JsonObject {
    const text = JSON.stringify(json).replace(/"\$kept:([^"]+)"/g, (_, name: string) => {
      if (!this.#kept.has(name)) throw new Error(`no value was kept as ${name}`);
      return JSON.stringify(this.#kept.get(name));
    });
    return JSON.parse(text) as JsonObject;
  }
}

function tailOf(events: readonly PlaneEvent[]): string {
  const first = events[0]?.atMs ?? 0;
  return events
    .slice(-20)
    .map(({ kind, atMs, says: said }) => `${Math.round(atMs - first)} ${kind} ${JSON.stringify(said).slice(0, 160)}`)
    .join("\n    ");
}
