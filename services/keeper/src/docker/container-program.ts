import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@rollcall/process";
import type Docker from "dockerode";
import type { PortOwner } from "../check/port-owner.ts";
import { type CheckResult, tryPort } from "../check/try-port.ts";
import type { Launch, Program, ProgramContext, ProgramStatus } from "../execution/executor.ts";
import type { MachineClock } from "../execution/keeper-services.ts";
import { environmentOf, Refusal, wordsOf } from "../launch/job-environment.ts";
import type { WorkRules } from "../launch/permissions.ts";
import type { ContainerPlan } from "../spec/read-spec.ts";
import type { Exit } from "../state/execution-state.ts";
import { ContainerLog } from "./container-log.ts";
import { containerName, containerSettings, isContainerOf, LABELS } from "./container-settings.ts";
import { type DockerEngine, messageOf, orNull, type Patience, statusOf } from "./docker-engine.ts";
import { evaluateContainer } from "./evaluate-container.ts";
import { ExecCheck } from "./exec-check.ts";
import type { ImageStore } from "./image-store.ts";
import { kernelKilled } from "./kernel-log.ts";

const LOOPBACK = "127.0.0.1";
/** The exit code of a container that was ended by SIGKILL. */
const KILLED_CODE = 137;
/** Engine states of a container that no longer runs. */
const ENDED: ReadonlySet<string> = new Set(["exited", "stopped", "dead"]);

/** The services that a container program uses. */
export interface ContainerServices {
  readonly engine: DockerEngine;
  readonly images: ImageStore;
  readonly rules: WorkRules;
  /** An id that is unique to the state directory. Each container has it as a label. */
  readonly keeper: string;
  readonly clock: MachineClock;
}

/** The container of an execution. */
export class ContainerProgram implements Program {
  readonly #services: ContainerServices;
  readonly #context: ProgramContext<ContainerPlan>;
  readonly #name: string;
  readonly #check: ExecCheck;
  readonly #ending = new AbortController();
  readonly #engine: Pick<DockerEngine, "client">;
  #log: ContainerLog | null = null;
  /** The socket of the engine that has the container; null until that engine was asked to start it. */
  #socket: string | null = null;

  constructor(services: ContainerServices, context: ProgramContext<ContainerPlan>) {
    this.#services = services;
    this.#context = context;
    this.#name = containerName(services.keeper, context.identity.id);
    // Use the engine that has the container. An engine that was found later does not know the container.
    this.#engine = {
      client: async (patience) => services.engine.client(patience, (await this.#begunOn()) ?? undefined),
    };
    this.#check = new ExecCheck(this.#engine);
  }

  async launch(): Promise<Launch> {
    const { rules, engine } = this.#services;
    if (!rules.executors.includes("docker")) return refusal("the node has turned its docker executor off");
    if (engine.facts === null) await engine.look();
    if (engine.facts === null) return refusal(engine.problem);
    try {
      return await this.#launchOn(engine.facts.kind);
    } catch (error) {
      if (error === this.#ending.signal.reason) return refusal("stopped before it was started");
      if (error instanceof Refusal) return refusal(error.message);
      if (statusOf(error) !== null) return refusal(`it could not be started: ${messageOf(error)}`);
      return refusal(`the container engine does not respond: ${messageOf(error)}`);
    }
  }

  abandon(): void {
    this.#ending.abort(new Error("the execution is stopped"));
  }

  async look(isLate: boolean): Promise<ProgramStatus> {
    const found = await this.#inspect().catch((error: unknown) => {
      if (statusOf(error) === null) return "unreachable" as const;
      throw error;
    });
    if (found === "unreachable") return { kind: "unreachable" };
    const { clock, keeper } = this.#services;
    const { identity, isOfThisBoot } = this.#context;
    const hasBegun = (await this.#begunOn()) !== null;
    if (found === null)
      return hasBegun ? { kind: "exited", exit: null, wallMs: null, about: "" } : { kind: "not-launched" };
    if (!isContainerOf(found.Config.Labels, keeper, identity.id)) {
      return { kind: "launch-failed", message: `container name ${this.#name} is already used by another container` };
    }
    const programStatus = evaluateContainer(found.State, isOfThisBoot ? null : clock.wallMs() - clock.nowMs());
    switch (programStatus.kind) {
      case "created":
        // Wait, because an earlier keeper may have requested a start that is still in progress.
        return hasBegun && !isLate ? { kind: "wait" } : { kind: "not-launched" };
      case "runs":
        await this.#takeLog(found.Id, true);
        return { kind: "runs", about: aboutOf(found) };
      case "exited":
        await this.#takeLog(found.Id, false);
        await this.#log?.finish();
        return {
          ...programStatus,
          exit: programStatus.exit && (await this.#withMemory(found.Id, programStatus.exit)),
          about: aboutOf(found),
        };
    }
  }

  async #withMemory(containerId: string, exit: Exit): Promise<Exit> {
    const isSure = exit.memoryKill.kind === "yes" || exit.code === 0 || this.#context.plan.memoryBytes === 0;
    if (isSure) return exit;
    const memoryKill = await kernelKilled(containerId);
    // If the kernel's log has no entry, use the engine's response, except for a container that was killed.
    return memoryKill.kind === "unknown" && exit.code !== KILLED_CODE ? exit : { ...exit, memoryKill };
  }

  /** Does nothing, because look() reports the end only after it has stored the output. */
  async checkAfterEnd(): Promise<void> {}

  async signal(signal: string): Promise<void> {
    await this.#unlessGone("quick", (container) =>
      container.kill({ signal }).catch(async (error: unknown) => {
        // Ignore a refusal by the engine, because the container may have ended since the last scan. In that case,
        // docker returns 409, podman 500.
        if (statusOf(error) === null) throw error;
        const found = await this.#inspect();
        if (found !== null && !ENDED.has(found.State.Status)) throw error;
      }),
    );
  }

  kill(): Promise<void> {
    return this.signal("SIGKILL");
  }

  async check(): Promise<CheckResult> {
    const { identity, plan } = this.#context;
    const { probe, probeTimeoutMs: timeoutMs } = plan;
    const found = await this.#inspect().catch((error: unknown) => (statusOf(error) === null ? "unreachable" : null));
    if (found === "unreachable") return { passed: null, message: "the container engine does not respond" };
    if (found === null || probe === null) return { passed: false, message: "its container cannot be found" };
    if (probe.kind === "command") return this.#check.run(found.Id, probe.argv, timeoutMs);
    const host = this.#addressOf(found);
    const ownerOf = async (port: number) => ownerOfPublished(port, host, found.NetworkSettings.Ports);
    return tryPort(probe, { host, ownerOf, ports: identity.ports, timeoutMs });
  }

  /** Keep the container for inspection until the control plane knows that it ended. */
  async release(): Promise<boolean> {
    return true;
  }

  async remove(): Promise<void> {
    await this.#unlessGone("slow", (container) => container.remove({ force: true, v: true }));
  }

  close(): void {
    this.#ending.abort(new Error("the keeper is shutting down"));
  }

  async #launchOn(kind: "docker" | "podman"): Promise<Launch> {
    const { engine, images, rules, keeper } = this.#services;
    const { identity, plan, onProgress } = this.#context;
    const env = await environmentOf(identity, plan, rules, {});
    const argv = wordsOf(plan.argv, env);
    const { signal } = this.#ending;
    const found = await images.ensure(plan.image, onProgress, signal);
    if (!found.ok) return refusal(found.problem);
    signal.throwIfAborted();
    const socket = await engine.socket();
    const client = await engine.client("slow", socket);
    const limits = engine.facts?.limits ?? [];
    const settings = containerSettings({ keeper, engine: kind, limits, identity, plan, image: found.image, env, argv });
    await client.createContainer(settings).catch(async (error: unknown) => {
      // Ignore a refusal if the container is this execution's own: an earlier keeper created it and was then killed,
      // and look() has found that the container was never started. Docker returns 409, podman 500.
      if (statusOf(error) === null || !(await this.#isOwn())) throw error;
    });
    await this.#begin(socket);
    await client
      .getContainer(this.#name)
      .start()
      .catch((error: unknown) => {
        // Ignore a missing response. It is unknown what the engine did; look() finds out when the engine responds
        // again.
        if (statusOf(error) !== null) throw error;
      });
    this.#context.onNotice();
    return { ok: true };
  }

  async #isOwn(): Promise<boolean> {
    const found = await this.#inspect();
    return isContainerOf(found?.Config.Labels, this.#services.keeper, this.#context.identity.id);
  }

  async #inspect(): Promise<Docker.ContainerInspectInfo | null> {
    const client = await this.#engine.client("quick");
    return orNull(client.getContainer(this.#name).inspect());
  }

  /**
   * Record which engine is asked to start the container. If that engine loses the container later, no engine creates it
   * again.
   */
  async #begin(socket: string): Promise<void> {
    const file = await open(join(this.#context.directory, "run", "started"), "w", 0o600);
    try {
      await file.writeFile(socket);
      await file.sync();
    } finally {
      await file.close();
    }
    this.#socket = socket;
  }

  /** The socket of the engine that was asked to start the container; null if no engine was asked. */
  async #begunOn(): Promise<string | null> {
    if (this.#socket !== null) return this.#socket;
    try {
      this.#socket = await readFile(join(this.#context.directory, "run", "started"), "utf8");
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw error;
    }
    return this.#socket;
  }

  async #takeLog(containerId: string, isRunning: boolean): Promise<void> {
    const { directory, log, onNotice, output } = this.#context;
    const parts = { engine: this.#engine, containerId, isRunning, directory, log, onEnd: onNotice };
    (await output()).take((stores) => {
      this.#log = new ContainerLog({ ...parts, stores });
      return [this.#log];
    });
  }

  /**
   * The address for reaching the container's ports. Prefer the container's own address, because on loopback, a proxy of
   * the engine can accept connections that the container does not.
   */
  #addressOf({ NetworkSettings }: Docker.ContainerInspectInfo): string {
    if (this.#services.engine.facts?.isRootless !== false) return LOOPBACK;
    const networks = Object.values(NetworkSettings.Networks ?? {});
    return networks.map(({ IPAddress }) => IPAddress).find((address) => address !== "") ?? LOOPBACK;
  }

  /** Send the engine a request about its own container. Does nothing if the container is gone or has ended. */
  async #unlessGone(patience: Patience, ask: (container: Docker.Container) => Promise<unknown>): Promise<void> {
    const found = await this.#inspect();
    if (!isContainerOf(found?.Config.Labels, this.#services.keeper, this.#context.identity.id)) return;
    const container = (await this.#engine.client(patience)).getContainer(found?.Id ?? this.#name);
    await ask(container).catch((error: unknown) => {
      const status = statusOf(error);
      if (status !== 404 && status !== 409) throw error;
    });
  }
}

function refusal(problem: string): Launch {
  return { ok: false, problem };
}

function aboutOf({ Config }: Docker.ContainerInspectInfo): string {
  const image = Config.Labels?.[LABELS.image] ?? "";
  return image === "" ? "" : `image ${image}`;
}

/**
 * Find out who owns the socket that accepts connections to a container's port. Only the container can listen at its own
 * address. On loopback, the engine owns the socket if it has published the port there. The engine cannot publish a port
 * that another program has.
 */
export function ownerOfPublished(
  port: number,
  host: string,
  published: Readonly<Record<string, readonly { readonly HostIp: string; readonly HostPort: string }[] | null>>,
): PortOwner {
  if (host !== LOOPBACK) return { kind: "own" };
  const bindings = published[`${port}/tcp`] ?? [];
  const isPublished = bindings.some(
    ({ HostIp: address, HostPort }) => HostPort === String(port) && ["", "0.0.0.0", "::", LOOPBACK].includes(address),
  );
  return isPublished ? { kind: "own" } : { kind: "unknown", why: "the container engine has not published it" };
}
