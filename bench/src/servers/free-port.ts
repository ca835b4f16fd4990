import { once } from "node:events";
import { createServer } from "node:net";

// Below the ports that the kernel gives to outgoing connections, of which a benchmark opens thousands.
const FIRST_PORT = 20_000;
const LAST_PORT = 31_999;
const TRIES = 50;

/** A free port of the loopback interface. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
    const server = createServer();
    server.listen(port, "127.0.0.1");
    const free = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!free) continue;
    server.close();
    await once(server, "close");
    return port;
  }
  throw new Error(`no free port from ${FIRST_PORT} to ${LAST_PORT} in ${TRIES} tries`);
}
