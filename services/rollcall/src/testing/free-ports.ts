import { createServer } from "node:net";

/**
 * Below the ports that the system gives to outgoing connections, which could take one between a stop and the next
 * start.
 */
const FIRST = 20_000;
/** A port is taken a second after it was found: workers that test at the same time find theirs in different ranges. */
const WORKERS = 4;
const PORTS_A_WORKER = 2_750;
const given = new Set<number>();

/**
 * Find free ports of 127.0.0.1, for processes that must find them again after a restart. None is returned twice in one
 * process.
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
