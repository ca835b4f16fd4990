import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { type Logger, Loop, systemClock, type Task } from "@rollcall/process";
import type Docker from "dockerode";
import type { Limit } from "../cgroup/cgroup-hierarchy.ts";

/** The properties that a responding engine reports about itself. */
export interface EngineFacts {
  readonly kind: "docker" | "podman";
  readonly version: string;
  /**
   * Whether the engine's containers belong to a non-root user. If they do, this machine cannot reach the
   * containers' addresses.
   */
  readonly isRootless: boolean;
  readonly limits: readonly Limit[];
}

/** How to reach an engine. */
export interface DockerEngineOptions {
  /** The value of DOCKER_HOST; null to search for an engine. */
  readonly host: string | null;
  readonly log: Logger;
  readonly limits?: AnswerLimits;
  /** Creates a client. Replaced in tests. */
  readonly connect?: typeof connectTo;
}

/**
 * How long to wait for a complete response. Slow calls, such as creating a container, may copy data first.
 * Following a log has no limit.
 */
export type Patience = "quick" | "slow" | "endless";

/** Time limits in milliseconds. */
type AnswerLimits = Readonly<Record<Exclude<Patience, "endless">, number>>;

const LIMITS: AnswerLimits = { quick: 20_000, slow: 300_000 };
const SCAN_EVERY_MS = 2_000;

/** Where a container engine listens on this machine, or why there is none. */
type DockerHost = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly problem: string };

const DOCKER = "/var/run/docker.sock";
const PODMAN = "/run/podman/podman.sock";

/** The container engine of this machine, whether it responds or not. */
export class DockerEngine {
  /** Checks repeatedly whether the engine responds. */
  readonly task: Task;
  readonly #options: DockerEngineOptions;
  readonly #clients = new Map<string, Promise<Docker>>();
  readonly #listeners = new Set<() => void>();
  #facts: EngineFacts | null = null;
  #problem = "the container engine has not been contacted yet";
  #isUnresponsive = false;

  constructor(options: DockerEngineOptions) {
    this.#options = options;
    this.task = new Loop({
      name: "container-engine",
      clock: systemClock,
      everyMs: SCAN_EVERY_MS,
      turn: () => this.look(),
    });
  }

  /** The properties of the engine; null while it does not respond. */
  get facts(): EngineFacts | null {
    return this.#facts;
  }

  /** Why the engine does not respond; empty while it does. */
  get problem(): string {
    return this.#problem;
  }

  /**
   * Whether the engine accepts connections but does not respond, which is a fault. A missing engine is not a fault.
   */
  get isUnresponsive(): boolean {
    return this.#isUnresponsive;
  }

  /** Call the listener when the engine's facts or its problem change. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Check whether the engine responds, and which engine it is. */
  async look(): Promise<void> {
    const before = JSON.stringify([this.#facts, this.#problem]);
    try {
      const client = await this.client("quick");
      const [version, info] = await Promise.all([client.version(), client.info()]);
      this.#facts = toFacts(version, info);
      this.#problem = "";
      this.#isUnresponsive = false;
    } catch (error) {
      this.#facts = null;
      this.#isUnresponsive = error instanceof LateAnswer;
      this.#problem = `the container engine does not respond: ${messageOf(error)}`;
    }
    if (JSON.stringify([this.#facts, this.#problem]) === before) return;
    const { log } = this.#options;
    if (this.#facts === null) log.warn({ problem: this.#problem }, "container engine does not respond");
    else log.info({ ...this.#facts }, "container engine found");
    for (const listener of this.#listeners) listener();
  }

  /** The engine's socket. Rejects when there is none. */
  async socket(): Promise<string> {
    const host = await findDockerHost(this.#options.host);
    if (!host.ok) throw new Error(host.problem);
    return host.path;
  }

  /** A client of this engine, or of the engine at `socket`. Rejects when there is no socket. */
  async client(patience: Patience, socket?: string): Promise<Docker> {
    const path = socket ?? (await this.socket());
    const key = `${patience} ${path}`;
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const { limits = LIMITS, connect = connectTo } = this.#options;
    const client = connect(path, patience === "endless" ? null : limits[patience]);
    this.#clients.set(key, client);
    // Forget a failure, so that the next call tries again: the library may not load while no file can be opened.
    client.catch(() => this.#clients.delete(key));
    return client;
  }
}

/**
 * The status code of an engine's response. Null if there was no response, in which case it is unknown what the
 * engine did.
 */
export function statusOf(error: unknown): number | null {
  const { statusCode } = (error ?? {}) as { readonly statusCode?: unknown };
  return typeof statusCode === "number" ? statusCode : null;
}

/** The engine's own error message, without the text that the client adds. */
export function messageOf(error: unknown): string {
  const { json } = (error ?? {}) as { readonly json?: { readonly message?: unknown } | null };
  const text =
    typeof json?.message === "string" ? json.message : error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").trim().slice(0, 400);
}

/** The response, or null when the engine reports that the object does not exist. */
export async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch((error: unknown) => {
    if (statusOf(error) === 404) return null;
    throw error;
  });
}

/** Load the library and connect. Most machines only run processes, and do not need the library. */
async function connectTo(socketPath: string, limitMs: number | null): Promise<Docker> {
  const { default: Client } = await import("dockerode");
  const client = new Client({ socketPath });
  if (limitMs !== null) limitAnswers(client.modem, limitMs);
  return client;
}

class LateAnswer extends Error {
  override readonly name = "LateAnswer";
}

type Answered = (error: Error | null, answer?: unknown) => void;

/** The part of the library that sends requests. Each call goes through `dial`. */
interface Modem {
  dial(options: { readonly abortSignal?: AbortSignal }, answered: Answered): void;
}

export interface LogRequest {
  readonly containerId: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

/**
 * Open the log of a container. This calls one level below the library's method, which would hold the whole log in
 * memory if the log is not followed.
 */
export function openLog(client: Docker, { containerId, query, signal }: LogRequest): Promise<Readable> {
  const request = {
    path: `/containers/${containerId}/logs?`,
    method: "GET",
    isStream: true,
    abortSignal: signal,
    options: query,
    statusCodes: { 200: true, 404: "no such container", 500: "server error" },
  };
  const modem: Modem = client.modem;
  return new Promise((resolve, reject) => {
    modem.dial(request, (error, stream) => (error === null ? resolve(stream as Readable) : reject(error)));
  });
}

/**
 * Limit the total time of each call. The library does not report a response that breaks off, and its own limit only
 * counts while no data arrives.
 */
function limitAnswers(modem: Modem, limitMs: number): void {
  const dial = modem.dial.bind(modem);
  modem.dial = (options, answered) => {
    const ending = new AbortController();
    const { abortSignal: given } = options;
    const abortSignal = given === undefined ? ending.signal : AbortSignal.any([given, ending.signal]);
    let isAnswered = false;
    const answerOnce: Answered = (error, answer) => {
      if (isAnswered) return;
      isAnswered = true;
      clearTimeout(late);
      answered(error, answer);
    };
    const late = setTimeout(() => {
      answerOnce(new LateAnswer(`no complete answer within ${limitMs / 1_000} s`));
      ending.abort();
    }, limitMs);
    dial({ ...options, abortSignal }, answerOnce);
  };
}

function toFacts(version: Docker.DockerVersion, info: Readonly<Record<string, unknown>>): EngineFacts {
  const names = (version.Components ?? []).map(({ Name }) => Name);
  const options = Array.isArray(info.SecurityOptions) ? info.SecurityOptions.map(String) : [];
  return {
    kind: names.some((name) => name.includes("Podman")) ? "podman" : "docker",
    version: version.Version,
    isRootless: options.some((option) => option.includes("rootless")),
    limits: [
      ...(info.CpuCfsQuota === true ? ["cpu" as const] : []),
      ...(info.MemoryLimit === true ? ["memory" as const] : []),
      ...(info.PidsLimit === true ? ["pids" as const] : []),
    ],
  };
}

/**
 * Parse an address in the form of DOCKER_HOST. The engine must run on this machine, since executions use this
 * machine's ports, GPUs and limits.
 */
export function parseDockerHost(words: string): DockerHost {
  const path = words.replace(/^unix:\/\//, "");
  if (path.startsWith("/")) return { ok: true, path };
  return { ok: false, problem: `${words} is not the address of a local socket, such as unix://${DOCKER}` };
}

/** Find this machine's engine: the configured one, else docker, else podman. */
async function findDockerHost(
  words: string | null,
  runtimeDirectory = process.env.XDG_RUNTIME_DIR,
): Promise<DockerHost> {
  if (words !== null) return parseDockerHost(words);
  const own = runtimeDirectory === undefined ? [] : [join(runtimeDirectory, "podman/podman.sock")];
  for (const path of [DOCKER, PODMAN, ...own]) {
    const isSocket = await stat(path).then(
      (found) => found.isSocket(),
      () => false,
    );
    if (isSocket) return { ok: true, path };
  }
  return { ok: false, problem: `neither ${DOCKER} nor ${PODMAN} is a socket: set Work.Docker.Host` };
}
