/** What a process has descriptors for. */
export interface DescriptorNeeds {
  /** Most descriptors that the process may hold; null when nothing limits them. */
  readonly limit: number | null;
  /** Most connections of the process to its record. */
  readonly record: number;
  /** Most connections of the API, as configured. */
  readonly api: number;
  /**
   * Most connections of agents: as configured, or null for as many as there is room for. Absent in a process that takes
   * none.
   */
  readonly agents?: number | null;
}

/** How many connections each port may take. */
export interface DescriptorPlan {
  readonly api: number;
  /** 0 in a process that takes no agents. */
  readonly agents: number;
  /** The port at which replicas ask each other. */
  readonly internal: number;
  /** Most descriptors that are needed for what is configured. */
  readonly needed: number;
  /** Whether a port has less than was configured, or agents less than a replica is made for. */
  readonly isShort: boolean;
}

/** Files, pipes, the log, connections to NATS and to other replicas, and 64 connections for probes. */
const OWN = 256;
const INTERNAL = 1_024;
const MOST_AGENTS = 65_536;
/** What one replica is made for; see docs/performance.md. */
const ENOUGH_AGENTS = 10_000;

/**
 * Share out the descriptors of a process, so that no port can take those of another: what the process itself and its
 * probes need comes first, then the ports. With enough of them each port has what is configured.
 */
export function planDescriptors(needs: DescriptorNeeds): DescriptorPlan {
  const { limit, record, api, agents } = needs;
  const hasAgents = agents !== undefined;
  const wantedAgents = hasAgents ? (agents ?? ENOUGH_AGENTS) : 0;
  const mostAgents = hasAgents ? (agents ?? MOST_AGENTS) : 0;
  const wantedInternal = hasAgents ? INTERNAL : 0;
  const needed = OWN + record + api + wantedInternal + wantedAgents;
  const total = limit ?? OWN + record + api + wantedInternal + mostAgents;
  // With very few even the reserve must leave something to serve.
  const shared = Math.max(total - OWN - record, Math.floor(total / 4));
  const share = (wanted: number, parts: number) => Math.min(wanted, Math.max(4, Math.floor(shared / parts)));
  const givenInternal = share(wantedInternal, 16);
  const givenApi = hasAgents
    ? // Agents may be many, and those who look after them must get in beside them.
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
