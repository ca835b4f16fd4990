import { gravestFirst } from "@rollcall/domain";
import type { Clock, FaultWatch, Logger, Task } from "@rollcall/process";
import type { AgentStatus } from "./agent-status.ts";
import { KeyRotation } from "./connection/key-rotation.ts";
import { StayConnected } from "./connection/stay-connected.ts";
import type { NodeDescription } from "./convert.ts";
import type { FactsReader } from "./facts/facts-reader.ts";
import { createNodeInfoKeeper, type NodeInfoKeeperOptions } from "./info/node-info-keeper.ts";
import type { AgentTrust } from "./network/agent-trust.ts";
import type { JoinTokenSource } from "./registration/join-token.ts";
import type { Registrar } from "./registration/registrar.ts";
import type { StateDirectory } from "./state/state-directory.ts";
import type { HeartbeatTransport } from "./stream/heartbeat-transport.ts";
import type { AgentIdentity } from "./stream/hello.ts";
import { createUsageFeed } from "./usage/usage-feed.ts";
import type { UsageSampler } from "./usage/usage-sampler.ts";
import { WishLog } from "./wish-log.ts";
import type { AgentWork } from "./work/agent-work.ts";
import { type AllocatedCapacity, type PortRange, workCapacity } from "./work/work-capacity.ts";

/** The parts of an agent. The agent uses nothing else, so that a test can replace everything. */
export interface AgentOptions {
  readonly identity: AgentIdentity;
  readonly description: NodeDescription;
  /** The storage of the sentinel. */
  readonly state: Pick<StateDirectory, "readSentinel" | "writeSentinel" | "removeSentinel">;
  readonly facts: FactsReader;
  readonly usage: UsageSampler;
  readonly registrar: Registrar;
  /** Where the join token comes from. Default: no token. */
  readonly joinToken?: JoinTokenSource;
  readonly transport: HeartbeatTransport;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns numbers in [0, 1), for jitter. */
  readonly random: () => number;
  /** The longest time between two checks of whether the machine has changed. Default: 1 minute. */
  readonly infoCheckMs?: number;
  /** The minimum time between two measurements of usage. Default 0: measure for each beat. */
  readonly usageGapMs?: number;
  /** The age at which the node's key is rotated automatically. Default 0: never. */
  readonly keyRotationIntervalMs?: number;
  /** Called for each session that a server has welcomed. */
  readonly onConnected?: () => void;
  /** How the agent handles executions, and how much of the machine they can use. Default: the node runs no work. */
  readonly work?: {
    readonly make: (onOffer: () => void) => AgentWork;
    readonly allocated: AllocatedCapacity;
    readonly ports: PortRange;
  };
  /**
   * How the agent recognizes servers. Default: the agent reports nothing about this, and ignores announced
   * authorities.
   */
  readonly trust?: AgentTrust;
  /** Problems of the agent's own process. Default: not monitored. */
  readonly faults?: Pick<FaultWatch, "task" | "faults" | "subscribe">;
  /** When the node's key was created, by this machine's wall clock. Default: now. */
  readonly keyMadeAtMs?: number;
}

/** An agent. It runs while its tasks run. */
export interface Agent {
  readonly tasks: readonly Task[];
  status(): AgentStatus;
  /**
   * Send a goodbye to the server, wait up to 5 s until it is acknowledged, then stop permanently. The
   * `stay-connected` task ends too.
   */
  close(reason: string): Promise<void>;
}

const DEFAULT_INFO_CHECK_MS = 60_000;

/** Create an agent. It reads no file and opens no connection before its task runs. */
export function createAgent(options: AgentOptions): Agent {
  const { clock, identity } = options;
  const log = options.log.child({ node_id: identity.nodeId });
  const wishes = new WishLog(log, identity.wishes);
  const work = options.work?.make(() => stayConnected.look()) ?? null;
  const info = createNodeInfoKeeper({
    ...options,
    log,
    ...offerOf(work, options),
  });
  options.faults?.subscribe(() => stayConnected.look());
  options.trust?.subscribe(() => stayConnected.look());
  const stayConnected = new StayConnected({
    ...options,
    work,
    info,
    usage: createUsageFeed(options.usage, () => clock.nowMs(), options.usageGapMs ?? 0),
    infoCheckMs: options.infoCheckMs ?? DEFAULT_INFO_CHECK_MS,
    log,
    onSettings: (settings) => {
      rotation.heed(settings);
      wishes.heed(settings);
    },
    onKeyUsed: () => rotation.used(),
  });
  const rotation = new KeyRotation({
    ...options,
    log,
    intervalMs: options.keyRotationIntervalMs ?? 0,
    keyMadeAtMs: options.keyMadeAtMs ?? clock.wallMs(),
    onOffered: () => stayConnected.renew(),
  });
  return {
    tasks: [
      { name: "stay-connected", run: (signal, succeeded) => stayConnected.run(signal, succeeded) },
      { name: "rotate-key", run: (signal, succeeded) => rotation.run(signal, succeeded) },
      ...(work?.tasks ?? []),
      ...(options.faults ? [options.faults.task] : []),
    ],
    status: () => ({ ...stayConnected.status(), ungrantedWishes: wishes.ungranted }),
    close: (reason) => stayConnected.close(reason),
  };
}

/**
 * How long a starting agent waits for the keeper before it describes the node. Without the wait, the node would
 * briefly report a condition.
 */
const AWAIT_KEEPER_MS = 1_500;

function offerOf(
  work: AgentWork | null,
  { work: given, faults, trust, clock }: AgentOptions,
): Pick<NodeInfoKeeperOptions, "offer" | "ready"> {
  return {
    offer: (facts) => ({
      work: facts === null || work === null || !given ? undefined : workCapacity(facts, work.greeting, given),
      conditions: gravestFirst([...(work?.conditions ?? []), ...(faults?.faults ?? [])]),
      trust: trust?.describe(),
    }),
    ready: async () => {
      if (work === null) return;
      const limit = new AbortController();
      const late = clock.sleep(AWAIT_KEEPER_MS, limit.signal).catch(() => {});
      await Promise.race([work.met, late]);
      limit.abort();
    },
  };
}
