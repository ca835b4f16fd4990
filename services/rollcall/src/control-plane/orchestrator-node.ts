import { arch, hostname, platform, release } from "node:os";
import { create } from "@bufbuild/protobuf";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Logger, Task } from "@rollcall/process";
import { joinAsOrchestrator, type ReservedStore } from "@rollcall/store";
import { nodeInfoToRecord } from "@rollcall/wire";

/** The process that is shown. */
export interface OrchestratorProcess {
  /** "up", "registry", "health", "admin" or "scheduler". */
  readonly service: string;
  /** Its own start, as its lease names it. */
  readonly instance: string;
  /** Where it can be reached, as HOST:PORT. */
  readonly address: string;
  readonly port: number;
  readonly version: string;
}

/** Machines may have taken the id, by chance or on purpose; more than a few is on purpose. */
const MOST_ATTEMPTS = 9;

/**
 * Shows this process as an ORCHESTRATOR node for as long as its lease is held. `show` is called each time that the
 * lease is held again: after doubt others may have shown it as gone.
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

  /** The lease is held: show the node, again if need be. Neither throws nor blocks. */
  show(): void {
    this.#wanted = true;
    this.#wake?.();
  }

  // Not a Loop: a turn without a call does nothing, and is no success of the task.
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
    const record = nodeInfoToRecord(info);
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
        this.#log.info({ node_id: nodeId, instance }, "shown as a node");
        return;
      }
    }
    throw new Error(`machines have taken every node id of ${orchestratorId(service, host, port, 1)}`);
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

/** The longest node id. */
const MOST_CHARACTERS = 63;

/**
 * The node id of a control-plane process: `<service>-<host>-<port>`, with what a node id may not hold replaced. The
 * same process finds its node again after a restart. `attempt` counts from 1; further ones are for when a machine of
 * that id exists.
 */
export function orchestratorId(service: string, hostname: string, port: number, attempt: number): string {
  const tail = attempt === 1 ? `-${port}` : `-${port}-${attempt}`;
  const host = hostname.replaceAll(/[^A-Za-z0-9._-]/g, "-");
  return `${`${service}-${host}`.slice(0, MOST_CHARACTERS - tail.length)}${tail}`;
}
