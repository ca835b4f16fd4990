/**
 * The maximum time until a fleet of this size is HEALTHY again after its control plane was
 * killed and restarted.
 */
export function returnAimMs(agents: number): number {
  const of = agents <= SMALL.agents ? SMALL : LARGE;
  return Math.max(SMALL.withinMs, (of.withinMs * agents) / of.agents);
}

const SMALL = { agents: 10_000, withinMs: 8_000 };
const LARGE = { agents: 100_000, withinMs: 300_000 };
