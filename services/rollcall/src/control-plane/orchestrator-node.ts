import { arch, hostname, platform, release } from "node:os";
import { create } from "@bufbuild/protobuf";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Logger, Task } from "@rollcall/process";
import { joinAsOrchestrator, type ReservedStore } from "@rollcall/store";
import { nodeInfoToRow } from "@rollcall/wire";

/** The process to show. */
export interface OrchestratorProcess {
  /** "up", "registry", "health", "admin" or "scheduler". */
  readonly service: string;
  /** The id of this start, as in its lease. */
  readonly instance: string;
  /** The process's HOST:PORT. */
  readonly address: string;
  readonly port: number;
  readonly version: string;
}

/**
 * Maximum number of ids to try. Machines can have a few of these ids by chance. If all are in use, someone has
 * registered them on purpose.
 */
const MOST_ATTEMPTS = 9;

/**
 * Lists this process as an ORCHESTRATOR node while it holds its lease. `show` is called whenever the process holds
 * the lease again, because others may have marked the process as gone while the lease was in doubt.
 */
export class OrchestratorNode implements Task {
  readonly name = "orchestrator-node";
  readonly #store: ReservedStore;
  readonly #process: OrchestratorProcess;
  readonly #log: Logger;
  #wanted = false;
  #wake: (() => void) | null = null;

  constructor(store: ReservedStore, process: OrchestratorProcess, log: Logger) {
    this.#store = store;
    this.#process = process;
    this.#log = log;
  }

  /** List the node. Called each time the process has taken its lease. Never throws or blocks. */
  show(): void {
    this.#wanted = true;
    this.#wake?.();
  }

  // Do not use a Loop, because an iteration without a call of show() does nothing and must not count as a success
  // of the task.
  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    while (!signal.aborted) {
      if (this.#wanted) {
        this.#wanted = false;
        try {
          await this.#join();
        } catch (error) {
          this.#wanted = true;
          throw error;
        }
        succeeded();
      } else {
        await this.#nextCall(signal);
      }
    }
  }

  async #join(): Promise<void> {
    const { service, instance, address, port, version } = this.#process;
    const host = hostname();
    const info = create(NodeInfoSchema, {
      hostname: host,
      agentVersion: version,
      os: { family: platform(), kernel: release(), architecture: arch() },
    });
    const record = nodeInfoToRow(info);
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const nodeId = orchestratorId(service, host, port, attempt);
      const joined = await joinAsOrchestrator(this.#store, {
        nodeId,
        instance,
        address,
        info: record.info,
        infoDigest: record.digest,
        summary: record.summary,
        labels: {},
      });
      if (joined) {
        this.#log.info({ node_id: nodeId, instance }, "registered as a node of the cluster");
        return;
      }
    }
    throw new Error(`all node ids are in use, starting with ${orchestratorId(service, host, port, 1)}`);
  }

  #nextCall(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#wake = null;
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#wake = wake;
      signal.addEventListener("abort", wake, { once: true });
      if (this.#wanted || signal.aborted) wake();
    });
  }
}

/** Maximum length of a node id. */
const MOST_CHARACTERS = 63;

/**
 * The node id of a control-plane process: `<service>-<host>-<port>`, with invalid characters replaced. After a
 * restart, a process gets the same id. `attempt` counts from 1; later attempts are for ids that a machine has
 * taken.
 */
export function orchestratorId(service: string, hostname: string, port: number, attempt: number): string {
  const tail = attempt === 1 ? `-${port}` : `-${port}-${attempt}`;
  const host = hostname.replaceAll(/[^A-Za-z0-9._-]/g, "-");
  return `${`${service}-${host}`.slice(0, MOST_CHARACTERS - tail.length)}${tail}`;
}
