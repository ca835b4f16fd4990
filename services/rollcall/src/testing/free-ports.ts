import { createServer } from "node:net";

/**
 * Below the ports that the system gives to outgoing connections, which could take one between a stop and the next
 * start.
 */
const FIRST = 20_000;
const LAST = 31_000;

/** Find free ports of 127.0.0.1, for processes that must find them again after a restart. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (!found.has(port) && (await isFree(port))) found.add(port);
  }
  return [...found];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
