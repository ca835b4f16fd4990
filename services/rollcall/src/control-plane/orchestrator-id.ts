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
