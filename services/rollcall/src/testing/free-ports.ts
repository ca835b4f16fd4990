import { createServer } from "node:net";

/**
 * First port to try. It is below the system's ephemeral ports, because the system could give an ephemeral port away
 * between a stop and the next start.
 */
const FIRST = 20_000;
/**
 * Number of ranges. A port is used only a second after it was found, so parallel test workers search different
 * ranges.
 */
const WORKERS = 4;
const PORTS_A_WORKER = 2_750;
const given = new Set<number>();

/**
 * Find free ports on 127.0.0.1 for processes that need the same port after a restart. Never returns a port twice in
 * one process.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const worker = Number(process.env.JEST_WORKER_ID ?? 0) % WORKERS;
  const found: number[] = [];
  while (found.length < count) {
    const port = FIRST + worker * PORTS_A_WORKER + Math.floor(Math.random() * PORTS_A_WORKER);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    found.push(port);
  }
  return found;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
