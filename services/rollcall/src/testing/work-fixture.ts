import { randomUUID } from "node:crypto";
import { cp } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Execution, ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { reasonOf } from "@rollcall/errors";
import { until } from "@rollcall/testkit/time";
import type { ControlPlaneClient } from "./control-plane-client.ts";
import { processesOf } from "./processes.ts";
import { endProcess, RollcallProcess } from "./rollcall-process.ts";
import { createUpFixture, type UpFixture } from "./up-fixture.ts";

/** Flags for an agent that runs processes as another user, which only root can. */
export const RUNS_WORK = ["--executors", "process", "--work-user", "nobody"];

/** How long to wait for executions. Starting a hundred processes takes long on a busy machine. */
const PATIENCE_MS = 120_000;

/** A job whose processes can be counted. */
export interface CountedJob {
  readonly name: string;
  /** A mark that only the command lines of the job's processes contain. */
  readonly mark: string;
  submit(): Promise<unknown>;
}

/** An `up` without its own agent, and agents that run work. */
export class WorkFixture {
  readonly #up: UpFixture;
  readonly #agents = new Map<string, RollcallProcess>();

  private constructor(up: UpFixture) {
    this.#up = up;
  }

  /** Start the control plane. Nodes fail repeatedly in tests of work, which must not count as flapping. */
  static async start(): Promise<WorkFixture> {
    const up = await createUpFixture();
    await up.up("--set", "Up.Agent=false");
    const values = { flappingHold: { seconds: 0n } };
    await up.client.policies.setHealthPolicy({ scope: { scope: { case: "default", value: true } }, values });
    return new WorkFixture(up);
  }

  get client(): ControlPlaneClient {
    return this.#up.client;
  }

  /** The addresses of the control plane. */
  get addresses(): Pick<UpFixture, "server" | "agentsAddress"> {
    return this.#up;
  }

  /** Start an agent, and wait until its node is HEALTHY and its executors are known. `server` is HOST:PORT. */
  async startAgent(name: string, server = this.#up.server, flags: readonly string[] = RUNS_WORK): Promise<void> {
    this.#agents.set(name, this.#up.agentAt(server, name, ...flags));
    await this.client.becomes(name, "APPROVED CONNECTED HEALTHY");
    // Wait until the node has no condition. It has one until its keeper has responded.
    await until(`${name} to know its executors`, async () => {
      return (await this.client.node(name))?.info?.conditions.length === 0;
    });
  }

  /** Start the agent of a node that is not admitted. */
  startOutcast(name: string, server = this.#up.server): void {
    this.#agents.set(name, this.#up.agentAt(server, name, ...RUNS_WORK));
  }

  /**
   * Copy the state directory of a node's agent as if to another machine, without the keeper and the lock, which name
   * processes of this machine.
   */
  async copyState(name: string, copy: string): Promise<void> {
    const directory = this.#stateOf(name);
    const left = ["keeper", "agent.pid"].map((file) => join(directory, file));
    await cp(directory, this.#stateOf(copy), { recursive: true, filter: (path) => !left.includes(path) });
  }

  /**
   * Start another agent of a node on a copied state directory. In this fixture, the agent is named after the copy.
   */
  startCopy(name: string, copy: string): void {
    this.#agents.set(copy, this.#up.agentOf(this.#stateOf(copy), "--name", name, ...RUNS_WORK));
  }

  agent(name: string): RollcallProcess {
    const agent = this.#agents.get(name);
    if (agent === undefined) throw new Error(`there is no agent ${name}`);
    return agent;
  }

  #stateOf(name: string): string {
    return join(dirname(this.#up.dataDirectory), name);
  }

  /** The process ids of a node's keepers. */
  async keepers(name: string): Promise<readonly number[]> {
    const state = `${dirname(this.#up.dataDirectory)}/${name} `;
    return (await processesOf("keeper --ends-idle")).flatMap(({ pid, command }) =>
      command.includes(state) ? [pid] : [],
    );
  }

  /** Run the command line as a user does. */
  rollcall(...words: readonly string[]): RollcallProcess {
    return new RollcallProcess(this.wordsFor(words));
  }

  /** Add the address of the control plane and a token to a command. */
  wordsFor(words: readonly string[]): readonly string[] {
    const at = ["--server", this.#up.server, "--token-file", `${this.#up.dataDirectory}/admin-token`];
    const end = words.indexOf("--");
    const place = end === -1 ? words.length : end;
    return [...words.slice(0, place), ...at, ...words.slice(place)];
  }

  /** A service whose only process sleeps again and again. */
  service(
    changes: MessageInitShape<typeof JobSpecSchema> = {},
    { does = "sleep 0.2", graceMs }: { readonly does?: string; readonly graceMs?: number } = {},
  ): CountedJob {
    const mark = `${this.#up.dataDirectory}/${randomUUID()}`;
    const command = ["sh", "-c", `while :; do ${does}; done`, mark];
    const stop = graceMs === undefined ? {} : { stop: { grace: durationFromMs(graceMs) } };
    const name = `job-${randomUUID().slice(0, 8)}`;
    // Omit the count of jobs that run once on every node, because they take none.
    const isPerNode = changes.type === JobType.DAEMON || changes.type === JobType.OPS;
    const spec = {
      ...{ name, type: JobType.SERVICE, ...(isPerNode ? {} : { count: 1 }) },
      ...changes,
      task: { case: "process", value: { command, ...stop } },
    };
    return { name, mark, submit: () => this.client.jobs.submitJob({ spec: spec as typeof spec & { task: never } }) };
  }

  /** The process ids of a job. */
  async running({ mark }: Pick<CountedJob, "mark">): Promise<readonly number[]> {
    const found = (await processesOf(mark)).filter(({ command }) => command.startsWith("sh -c while"));
    // Remove duplicates, because a shell that forks is listed twice until the child executes its program.
    const ids = new Set(found.map(({ pid }) => pid));
    return [...ids].filter((pid) => !found.some((one) => one.pid === pid && ids.has(one.parent))).sort();
  }

  async executions({ name }: Pick<CountedJob, "name">): Promise<readonly Execution[]> {
    return (await this.client.jobs.listExecutions({ job: name })).executions;
  }

  /** Wait until a number of executions of a job are ready. */
  async ready(job: Pick<CountedJob, "name">, count = 1): Promise<readonly Execution[]> {
    return until(
      `${count} of ${job.name} to be ready`,
      async () => {
        const found = (await this.executions(job)).filter(({ state }) => state === ExecutionState.READY);
        return found.length === count && found;
      },
      PATIENCE_MS,
    );
  }

  /** Wait until exactly one execution of a job is ready and one process runs. Returns the execution. */
  async survivor(job: CountedJob): Promise<Execution | undefined> {
    const [survivor] = await until("one survivor", async () => {
      const alive = (await this.executions(job)).filter(({ state }) => state === ExecutionState.READY);
      return (await this.running(job)).length === 1 && alive.length === 1 && alive;
    });
    return survivor;
  }

  /** Stop a job unless it has ended, and wait until none of its processes runs. */
  async stopped(job: CountedJob): Promise<void> {
    await this.client.jobs.stopJob({ name: job.name }).catch((error: unknown) => {
      if (reasonOf(error) !== "JOB_ENDED") throw error;
    });
    await until(`no process of ${job.name}`, async () => (await this.running(job)).length === 0, PATIENCE_MS);
  }

  async dispose(): Promise<void> {
    for (const { pid } of await processesOf(dirname(this.#up.dataDirectory))) endProcess(pid);
    await this.#up.dispose();
  }
}
