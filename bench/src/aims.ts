/** How soon a fleet whose control plane was killed and started again is to be HEALTHY, by its size. */
export function returnAimMs(agents: number): number {
  const of = agents <= SMALL.agents ? SMALL : LARGE;
  return Math.max(SMALL.withinMs, (of.withinMs * agents) / of.agents);
}

const SMALL = { agents: 10_000, withinMs: 8_000 };
const LARGE = { agents: 100_000, withinMs: 300_000 };
