import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, type Shell } from "@rollcall/cli";
import { DEMO_JOBS, DEMO_NODES, DEMO_PATIENCE, DEMO_SETTINGS, type DemoNode } from "./demo-nodes.ts";
import {
  type DemoProcess,
  endPart,
  endProcessesIn,
  isRunning,
  type OwnProcess,
  runWords,
  startPart,
} from "./demo-processes.ts";
import { DEMO_AUDIENCE, DEMO_CLIENT_ID, DevelopmentIssuer } from "./development-issuer.ts";
import { writeFakeGpus } from "./fake-gpus.ts";

/** Where a demo keeps its files and listens. */
export interface DemoPlace {
  /** The folder of the demo's files, as an absolute path. */
  readonly folder: string;
  /** The port of the API; the other ports follow it. */
  readonly port: number;
}

const READY_LIMIT_MS = 60_000;
const POLL_MS = 250;
/** Limit for ending jobs; what remains is killed with its keeper. */
const JOBS_LIMIT_MS = 15_000;

/** The data directory of a demo's control plane. */
export function dataDirectoryOf(folder: string): string {
  return join(folder, "control-plane");
}

/** A control plane with agents, jobs and an issuer, all of them processes of this machine. */
export class Demo {
  readonly #own: OwnProcess;
  readonly #shell: Shell;
  readonly #place: DemoPlace;
  readonly #agents = new Map<string, DemoProcess>();
  #issuer: DevelopmentIssuer | null = null;
  #up: DemoProcess | null = null;

  constructor(own: OwnProcess, shell: Shell, place: DemoPlace) {
    this.#own = own;
    this.#shell = shell;
    this.#place = place;
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...this.#shell.env, ROLLCALL_DATA_DIR: dataDirectoryOf(this.#place.folder) };
  }

  get issuerUrl(): string {
    return this.#issuer?.url ?? "";
  }

  /** Start everything. Rejects with Failure when a part does not start. */
  async start(signal: AbortSignal): Promise<void> {
    const { folder, port } = this.#place;
    await mkdir(folder, { recursive: true });
    // Let other users enter the folder, because executions run as other users and must reach their directories.
    await chmod(folder, 0o711);
    this.#issuer = await DevelopmentIssuer.listen(port + 30);
    this.#say("starting the control plane ...");
    await this.#startControlPlane(signal);
    this.#say(`starting ${DEMO_NODES.length} agents ...`);
    for (const node of DEMO_NODES) await this.#startAgent(node);
    const approved = DEMO_NODES.filter(({ isPending }) => isPending !== true).map(({ name }) => name);
    const all = DEMO_NODES.map(({ name }) => name);
    await this.#run(["node", "wait", ...all, "--for", "connected", "--timeout", "60s"], signal);
    await this.#run(["node", "approve", ...approved, "--yes", "-m", "the demo"], signal);
    // Label the nodes as an operator does, because jobs select nodes by operators' labels.
    for (const { name, labels } of DEMO_NODES) {
      if (approved.includes(name)) await this.#run(["node", "label", name, `role=${labels.role}`], signal);
    }
    this.#say("submitting jobs ...");
    for (const { name, text } of DEMO_JOBS) {
      const file = join(folder, `${name}.yaml`);
      await writeFile(file, text);
      await this.#run(["job", "run", "--detach", file], signal);
    }
  }

  /** Kill the agent of a node, as when its machine loses power. Returns what will happen. */
  async crash(name: string): Promise<string> {
    const agent = this.#agentOf(name);
    if (!isRunning(agent)) return `${name} has already crashed; \`rollcall demo start ${name}\` starts it again`;
    agent.child.kill("SIGKILL");
    return (
      `${name} crashed: its connection broke, so it is disconnected at once. After ${DEMO_PATIENCE} of silence it ` +
      "becomes unhealthy, and its executions are placed elsewhere"
    );
  }

  /** Pause the agent of a node: its connection stays open, but it sends nothing. */
  async freeze(name: string): Promise<string> {
    const agent = this.#agentOf(name);
    if (!isRunning(agent)) throw new Failure(`${name} has crashed: \`rollcall demo start ${name}\` starts it again`);
    agent.child.kill("SIGSTOP");
    agent.isFrozen = true;
    return `${name} is frozen: it sends nothing. After ${DEMO_PATIENCE} of silence it becomes unhealthy`;
  }

  /** Start the agent of a node again, or let a frozen one continue. */
  async revive(name: string): Promise<string> {
    const agent = this.#agentOf(name);
    if (isRunning(agent) && !agent.isFrozen) return `${name} is running`;
    if (isRunning(agent)) {
      agent.child.kill("SIGCONT");
      agent.isFrozen = false;
      return `${name} continues`;
    }
    const node = DEMO_NODES.find((it) => it.name === name);
    if (node !== undefined) await this.#startAgent(node);
    return `${name} was started: it continues with the same key and is still approved`;
  }

  /** End everything, in reverse order of the start. */
  async stop(): Promise<void> {
    this.#say("stopping jobs, agents and the control plane ...");
    if (this.#up !== null && isRunning(this.#up)) {
      // Start all agents again, because jobs end only on nodes that respond.
      for (const name of this.#agents.keys()) await this.revive(name).catch(() => {});
      const words = ["job", "stop", "--all", "--yes", "--wait", "-m", "the demo ends"];
      await runWords(this.#own, words, this.#env, JOBS_LIMIT_MS).catch(() => {});
    }
    await Promise.all([...this.#agents.values()].map(endPart));
    // Keepers outlive their agents, and executions that did not end in time outlive their keepers.
    await endProcessesIn(this.#place.folder, ["keeper"]);
    if (this.#up !== null) await endPart(this.#up);
    await this.#issuer?.close();
  }

  async #startControlPlane(signal: AbortSignal): Promise<void> {
    const { folder, port } = this.#place;
    const settings = [
      ...DEMO_SETTINGS,
      `OIDC.Issuer=${this.issuerUrl}`,
      `OIDC.Audience=${DEMO_AUDIENCE}`,
      `OIDC.ClientID=${DEMO_CLIENT_ID}`,
      "OIDC.SubjectClaim=email",
      "OIDC.RoleClaim=groups",
      "OIDC.RoleMap=sre=admin,oncall=operator,staff=viewer",
    ];
    const ports = { port, "agent-port": port + 1, "internal-port": port + 20, "probe-port": port + 90 };
    this.#up = startPart(
      this.#own,
      [
        ...["up", "--no-agent", "--data-dir", dataDirectoryOf(folder)],
        ...Object.entries(ports).flatMap(([flag, value]) => [`--${flag}`, String(value)]),
        ...settings.flatMap((setting) => ["--set", setting]),
      ],
      { log: this.#log("control-plane"), env: this.#env },
    );
    const endMs = performance.now() + READY_LIMIT_MS;
    for (;;) {
      if (!isRunning(this.#up)) throw new Failure(await this.#failureOf("control-plane"));
      const isUp = await runWords(this.#own, ["status"], this.#env).then(
        () => true,
        () => false,
      );
      if (isUp) return;
      if (performance.now() > endMs) throw new Failure(await this.#failureOf("control-plane"));
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  async #startAgent(node: DemoNode): Promise<void> {
    const { folder, port } = this.#place;
    const home = join(folder, node.name);
    const bin = await writeFakeGpus(home, node);
    const labels = Object.entries(node.labels).flatMap(([key, value]) => ["--label", `${key}=${value}`]);
    const words = [
      ...["agent", "--server", `127.0.0.1:${port}`, "--name", node.name, "--state-dir", join(home, "state")],
      ...["--executors", "process", ...labels],
    ];
    const env = { ...this.#shell.env, PATH: `${bin}:${this.#shell.env.PATH ?? ""}` };
    this.#agents.set(node.name, startPart(this.#own, words, { log: this.#log(node.name), env }));
  }

  #agentOf(name: string): DemoProcess {
    const agent = this.#agents.get(name);
    if (agent === undefined) {
      throw new Failure(`the demo has no machine ${name}; it has ${[...this.#agents.keys()].join(", ")}`);
    }
    return agent;
  }

  #log(part: string): string {
    return join(this.#place.folder, `${part}.log`);
  }

  async #failureOf(part: string): Promise<string> {
    const file = this.#log(part);
    const text = await readFile(file, "utf8").catch(() => "");
    return `the ${part} did not start; the end of ${file}:\n${text.trimEnd().split("\n").slice(-5).join("\n")}`;
  }

  async #run(words: readonly string[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await runWords(this.#own, words, this.#env);
  }

  #say(text: string): void {
    this.#shell.err.write(`${text}\n`);
  }
}
