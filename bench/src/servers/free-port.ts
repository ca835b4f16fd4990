import { once } from "node:events";
import { createServer } from "node:net";

// The first port to try. It is below the kernel's range for outgoing connections, because a benchmark opens
// thousands of those.
const FIRST_PORT = 20_000;
/**
 * The number of test workers that run at the same time. Each searches a different range, because a port is
 * bound only about a second after it was found.
 */
const WORKERS = 4;
const PORTS_A_WORKER = 2_750;
const TRIES = 50;
const given = new Set<number>();

/** Find a free port of the loopback interface that this function has not returned before. */
export async function freePort(): Promise<number> {
  const first = FIRST_PORT + (Number(process.env.JEST_WORKER_ID ?? 0) % WORKERS) * PORTS_A_WORKER;
  for (let tries = 0; tries < TRIES; tries++) {
    const port = first + Math.floor(Math.random() * PORTS_A_WORKER);
    if (given.has(port)) continue;
    const server = createServer();
    server.listen(port, "127.0.0.1");
    const free = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!free) continue;
    server.close();
    await once(server, "close");
    given.add(port);
    return port;
  }
  throw new Error(`no free port from ${first} to ${first + PORTS_A_WORKER - 1} in ${TRIES} tries`);
}
