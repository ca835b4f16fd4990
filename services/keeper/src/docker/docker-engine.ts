import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { type Logger, Loop, systemClock, type Task } from "@rollcall/process";
import type Docker from "dockerode";
import type { Limit } from "../cgroup/cgroup-hierarchy.ts";

/** What an engine that answers says of itself. */
export interface EngineFacts {
  readonly kind: "docker" | "podman";
  readonly version: string;
  /** Whether its containers belong to a user who is not root: their addresses are not this machine's then. */
  readonly isRootless: boolean;
  readonly limits: readonly Limit[];
}

/** What an engine is reached with. */
export interface DockerEngineOptions {
  /** As DOCKER_HOST; null for the engine that is found. */
  readonly host: string | null;
  readonly log: Logger;
  readonly limits?: AnswerLimits;
}

/** How long an answer may take. What is created may be copied first; what is followed has no end. */
export type Patience = "quick" | "slow" | "endless";

/** In milliseconds. */
type AnswerLimits = Readonly<Record<Exclude<Patience, "endless">, number>>;

const LIMITS: AnswerLimits = { quick: 20_000, slow: 300_000 };
const LOOK_EVERY_MS = 2_000;

/** Where a container engine listens on this machine, or why that cannot be. */
type DockerHost = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly problem: string };

const DOCKER = "/var/run/docker.sock";
const PODMAN = "/run/podman/podman.sock";

/** The container engine of this machine, whether it answers or not. */
export class DockerEngine {
  /** Sees whether it answers. */
  readonly task: Task;
  readonly #options: DockerEngineOptions;
  readonly #clients = new Map<string, Promise<Docker>>();
  readonly #listeners = new Set<() => void>();
  #facts: EngineFacts | null = null;
  #problem = "it was not looked for yet";
  #isUnresponsive = false;

  constructor(options: DockerEngineOptions) {
    this.#options = options;
    this.task = new Loop({
      name: "container-engine",
      clock: systemClock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.look(),
    });
  }

  /** Null while it does not answer. */
  get facts(): EngineFacts | null {
    return this.#facts;
  }

  /** Why it does not answer; empty while it does. */
  get problem(): string {
    return this.#problem;
  }

  /** Whether it takes connections and does not answer, which is a fault; one that is not there is none. */
  get isUnresponsive(): boolean {
    return this.#isUnresponsive;
  }

  /** Be told when it begins or ceases to answer. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** See whether it answers, and what it is. */
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
      this.#problem = `the container engine does not answer: ${messageOf(error)}`;
    }
    if (JSON.stringify([this.#facts, this.#problem]) === before) return;
    const { log } = this.#options;
    if (this.#facts === null) log.warn({ problem: this.#problem }, "container engine does not answer");
    else log.info({ ...this.#facts }, "container engine found");
    for (const listener of this.#listeners) listener();
  }

  /** The socket of it. Rejects when there is none. */
  async socket(): Promise<string> {
    const host = await findDockerHost(this.#options.host);
    if (!host.ok) throw new Error(host.problem);
    return host.path;
  }

  /** A client of it, or of the engine at a socket. Rejects when there is no socket. */
  async client(patience: Patience, socket?: string): Promise<Docker> {
    const path = socket ?? (await this.socket());
    const key = `${patience} ${path}`;
    const limits = this.#options.limits ?? LIMITS;
    const client = this.#clients.get(key) ?? connectTo(path, patience === "endless" ? null : limits[patience]);
    this.#clients.set(key, client);
    return client;
  }
}

/** The status of an engine's answer; null when it gave none, so that it is not known what it did. */
export function statusOf(error: unknown): number | null {
  const { statusCode } = (error ?? {}) as { readonly statusCode?: unknown };
  return typeof statusCode === "number" ? statusCode : null;
}

/** What an engine says of an error, without the words that the client adds. */
export function messageOf(error: unknown): string {
  const { json } = (error ?? {}) as { readonly json?: { readonly message?: unknown } | null };
  const text =
    typeof json?.message === "string" ? json.message : error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").trim().slice(0, 400);
}

/** Resolves with null where the engine says that there is no such thing. */
export async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch((error: unknown) => {
    if (statusOf(error) === 404) return null;
    throw error;
  });
}

/** The library is loaded where there is an engine: most machines run processes alone. */
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

/** The part of the library that asks: each call of it goes through `dial`. */
interface Modem {
  dial(options: { readonly abortSignal?: AbortSignal }, answered: Answered): void;
}

/** What is asked of a container's log. */
export interface LogRequest {
  readonly containerId: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

/** Open the log of a container. The library holds one that is not followed in memory: it is asked one level below. */
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
 * Have each call end within a time, whatever happens to its answer: the library says nothing about one that is cut off
 * after it has begun, and its own limit only counts while nothing comes.
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
      answerOnce(new LateAnswer(`no whole answer within ${limitMs / 1_000} s`));
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

/** Read an address as DOCKER_HOST has it. Its engine must be this machine's: ports, GPUs and limits are. */
export function parseDockerHost(words: string): DockerHost {
  const path = words.replace(/^unix:\/\//, "");
  if (path.startsWith("/")) return { ok: true, path };
  return { ok: false, problem: `${words} is no address of a socket of this machine, such as unix://${DOCKER}` };
}

/** Find the engine of this machine: the one that is named, else docker's, else podman's. */
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
  return { ok: false, problem: `there is no socket ${DOCKER} or ${PODMAN}: see Work.Docker.Host` };
}
