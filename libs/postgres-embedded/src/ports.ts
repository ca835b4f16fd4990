import { randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { replaceFile } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";

// The lowest port to use. Ports from 32768 up are not used, because outgoing connections can take them at any moment.
const LOWEST_PORT = 20_000;
const HIGHEST_PORT = 32_767;
const MAX_ATTEMPTS = 200;

/** Whether this port of 127.0.0.1 is free. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}

/** The last port of a directory's server; null when there is none. */
export async function rememberedPort(dir: string): Promise<number | null> {
  try {
    const port = Number((await readFile(portFile(dir), "utf8")).trim());
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : null;
  } catch {
    // If the file does not exist, any port can be used.
    return null;
  }
}

/** Store a port for the next start. */
export async function rememberPort(dir: string, port: number): Promise<void> {
  await replaceFile(portFile(dir), `${port}\n`, 0o644);
}

/**
 * Choose a port for a server to start: the server's last port if it is free, otherwise any free port.
 *
 * @throws EmbeddedPostgresError when no port in the range seems to be free.
 */
export async function choosePort(remembered: number | null): Promise<number> {
  if (remembered !== null && (await isPortFree(remembered))) return remembered;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT + 1);
    if (await isPortFree(port)) return port;
  }
  throw new EmbeddedPostgresError(`no free port for Postgres between ${LOWEST_PORT} and ${HIGHEST_PORT} on 127.0.0.1`);
}

function portFile(dir: string): string {
  return join(dir, "port");
}
