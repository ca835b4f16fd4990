import { generateKeyPair, type NodeKeyPair } from "@rollcall/identity";
import type { Logger } from "@rollcall/process";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { type Agent, type AgentOptions, createAgent } from "../agent.ts";
import type { MachineFacts } from "../facts/machine-facts.ts";
import { NodeKeys } from "../state/node-keys.ts";
import type { Sentinel } from "../state/sentinel.ts";
import type { MachineUsage } from "../usage/machine-usage.ts";
import { FakeControlPlane } from "./fake-control-plane.ts";
import { MemoryKeyFiles } from "./memory-key-files.ts";

export interface LoggedLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** An agent whose environment the test controls completely. */
export interface AgentHarness {
  readonly agent: Agent;
  readonly plane: FakeControlPlane;
  readonly clock: ManualClock;
  readonly keyPair: NodeKeyPair;
  readonly keyFiles: MemoryKeyFiles;
  readonly logged: LoggedLine[];
  /** The sentinel on the disk. */
  sentinel: Sentinel | undefined;
  facts: MachineFacts;
  usage: MachineUsage;
  /** Number of times usage was measured. */
  measurements: number;
  /** Run the agent's task until it ends or is stopped. */
  start(): void;
  /** Abort the task without a goodbye. */
  kill(): Promise<void>;
  /** Resolves when the task has ended. */
  ended(): Promise<void>;
}

/** The parts of the harness that a test can choose in advance. */
export interface HarnessOptions {
  readonly plane?: FakeControlPlane;
  readonly keyPair?: NodeKeyPair;
  readonly sentinel?: Sentinel;
  /** Returns numbers for jitter. Default: always 0, for no jitter. */
  readonly random?: () => number;
  readonly wishedHeartbeatMs?: number;
  readonly wishedInfoMs?: number;
  /** The files of the node's keys. Default: files with `keyPair` as the node's key. */
  readonly keyFiles?: MemoryKeyFiles;
  readonly keyRotationIntervalMs?: number;
  /** How the agent handles executions. Default: the node runs no work. */
  readonly work?: AgentOptions["work"];
}

/** Create an agent named `node-1` that has not been started. */
export function createHarness(options: HarnessOptions = {}): AgentHarness {
  const clock = new ManualClock();
  const plane = options.plane ?? new FakeControlPlane();
  const keyPair = options.keyPair ?? generateKeyPair();
  const logged: LoggedLine[] = [];
  const files = options.keyFiles ?? new MemoryKeyFiles(keyPair);
  const keys = new NodeKeys({ ...files, files, log: recordingLogger(logged) });
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const harness: AgentHarness = {
    agent: createAgent({
      identity: {
        nodeId: "node-1",
        keys,
        agentVersion: "0.1.0",
        instanceId: "process-1",
        bootId: "boot-1",
        machineFingerprint: "machine-1",
        wishes: {
          heartbeatMs: options.wishedHeartbeatMs,
          infoMs: options.wishedInfoMs,
        },
      },
      description: { agentVersion: "0.1.0", advertiseUrl: "", labels: { zone: "a" } },
      state: {
        readSentinel: async () => harness.sentinel,
        writeSentinel: async (sentinel) => {
          harness.sentinel = sentinel;
        },
        removeSentinel: async () => {
          harness.sentinel = undefined;
        },
      },
      facts: { read: async () => harness.facts },
      usage: {
        refresh: async () => {
          harness.measurements += 1;
        },
        latest: () => harness.usage,
      },
      registrar: plane,
      transport: plane,
      clock,
      log: recordingLogger(logged),
      random: options.random ?? (() => 0),
      keyRotationIntervalMs: options.keyRotationIntervalMs ?? 0,
      ...(options.work && { work: options.work }),
    }),
    plane,
    clock,
    keyPair,
    keyFiles: files,
    logged,
    sentinel: options.sentinel,
    facts: SMALL_FACTS,
    usage: SMALL_USAGE,
    measurements: 0,
    start: () => {
      const runs = harness.agent.tasks.map((task) =>
        task
          .run(stopping.signal, () => {})
          .catch((error: unknown) => {
            // Rethrow any other error, because an aborted loop rejects with the signal's reason.
            if (error !== stopping.signal.reason) throw error;
          }),
      );
      running = runs[0] ?? running;
    },
    kill: async () => {
      stopping.abort(new Error("killed"));
      await running;
      await settle();
    },
    ended: () => running,
  };
  return harness;
}

/** The facts of a small machine. */
export const SMALL_FACTS: MachineFacts = {
  hostname: "node-1.example",
  operatingSystem: { family: "linux", name: "Debian", kernel: "6.1.0", architecture: "x64" },
  cpu: { model: "CPU", sockets: 1, cores: 4, threads: 8, usableMillis: 8_000 },
  memoryBytes: 16 * 1024 ** 3,
  diskBytes: 100 * 1024 ** 3,
  numaNodes: [],
  gpus: [],
  vm: { capable: true, message: "", nested: false },
  vfioGpus: [],
  interfaces: [],
  unknown: [],
};

/** The usage of a small machine. */
export const SMALL_USAGE: MachineUsage = {
  cpuPercent: 12.34,
  memory: { usedBytes: 4 * 1024 ** 3, totalBytes: 16 * 1024 ** 3 },
  disk: { usedBytes: 10 * 1024 ** 3, totalBytes: 100 * 1024 ** 3 },
  temperatures: undefined,
  gpus: [],
  gpusUnknown: false,
  numaNodes: [],
};

/** A logger that stores its lines. */
export function recordingLogger(lines: LoggedLine[], bound: Readonly<Record<string, unknown>> = {}): Logger {
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: { ...bound, ...fields } });
  return {
    trace: at("trace"),
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    fatal: at("fatal"),
    child: (fields) => recordingLogger(lines, { ...bound, ...fields }),
  };
}
