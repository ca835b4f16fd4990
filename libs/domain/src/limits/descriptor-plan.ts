/** The file descriptors that a process needs. */
export interface DescriptorNeeds {
  /** Maximum number of descriptors of the process; null if there is no limit. */
  readonly limit: number | null;
  /** Maximum number of connections to the store. */
  readonly record: number;
  /** Maximum number of API connections, as configured. */
  readonly api: number;
  /**
   * Maximum number of agent connections, as configured; null if only the descriptors limit it. Absent in a process
   * that accepts no agents.
   */
  readonly agents?: number | null;
}

/** Maximum number of connections for each port. */
export interface DescriptorPlan {
  readonly api: number;
  /** Maximum number of agent connections; 0 in a process that accepts no agents. */
  readonly agents: number;
  /** Maximum number of connections to the port for other replicas. */
  readonly internal: number;
  /** Maximum number of descriptors that the configuration needs. */
  readonly needed: number;
  /**
   * Whether the descriptors are too few: some port gets fewer connections than configured, or fewer agents can connect
   * than a replica is designed for.
   */
  readonly isShort: boolean;
}

/**
 * Number of descriptors for the process itself: files, pipes, the log, connections to NATS and to other replicas, and
 * 64 connections for probes.
 */
const OWN = 256;
const INTERNAL = 1_024;
const MOST_AGENTS = 65_536;
/** The number of agents that one replica is designed for; see docs/performance.md. */
const ENOUGH_AGENTS = 10_000;

/**
 * Divide the descriptors of a process among its ports, so that no port can use up those of another. The process
 * itself and its probes get their descriptors first, then the ports. If there are enough descriptors, each port gets
 * its configured number.
 */
export function planDescriptors(needs: DescriptorNeeds): DescriptorPlan {
  const { limit, record, api, agents } = needs;
  const hasAgents = agents !== undefined;
  const wantedAgents = hasAgents ? (agents ?? ENOUGH_AGENTS) : 0;
  const mostAgents = hasAgents ? (agents ?? MOST_AGENTS) : 0;
  const wantedInternal = hasAgents ? INTERNAL : 0;
  const needed = OWN + record + api + wantedInternal + wantedAgents;
  const total = limit ?? OWN + record + api + wantedInternal + mostAgents;
  // If the process has very few descriptors, leave at least a quarter of them for calls.
  const shared = Math.max(total - OWN - record, Math.floor(total / 4));
  const share = (wanted: number, parts: number) => Math.min(wanted, Math.max(4, Math.floor(shared / parts)));
  const givenInternal = share(wantedInternal, 16);
  const givenApi = hasAgents
    ? // There can be many agents, and their operators must still be able to connect.
      share(api, shared - givenInternal - api >= wantedAgents ? 1 : 4)
    : share(api, 1);
  const givenAgents = hasAgents ? Math.max(4, Math.min(mostAgents, shared - givenInternal - givenApi)) : 0;
  return {
    api: givenApi,
    agents: givenAgents,
    internal: givenInternal,
    needed,
    isShort: limit !== null && limit < needed,
  };
}
