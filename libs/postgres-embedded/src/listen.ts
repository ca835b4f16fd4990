import type { Logger } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";
import { loopback, type ServerLocation, socketIn } from "./place.ts";
import { choosePort, isPortFree, rememberedPort } from "./ports.ts";
import type { RunAs } from "./run-as.ts";
import { chooseSocketDirectory, readySocketDirectory } from "./socket-directory.ts";

export type Listen =
  | { readonly kind: "socket"; readonly directory: string }
  | {
      readonly kind: "loopback";
      /** The required port; null if any port can be used. */
      readonly port: number | null;
      /** The port to try first when no port is required. */
      readonly rememberedPort: number | null;
    };

export interface ListenInput {
  readonly dir: string;
  readonly runAs: RunAs;
  readonly listen: Listen["kind"];
  /** The port on loopback. */
  readonly port: number | null;
  readonly log: Logger;
}

/**
 * Decide where a directory's server listens: on a socket, or on loopback if that is requested or sockets are not
 * possible.
 */
export async function chooseListen(input: ListenInput): Promise<Listen> {
  const { dir, runAs, listen, port, log } = input;
  if (listen === "socket") {
    const found = await chooseSocketDirectory({ dir, runAs });
    if (found.directory !== null) return { kind: "socket", directory: found.directory };
    log.warn(
      { why: found.why },
      "postgres cannot use a socket, so it listens on loopback, where every user of this machine can connect",
    );
  }
  return { kind: "loopback", port, rememberedPort: await rememberedPort(dir) };
}

/**
 * Prepare the socket's directory or the port for a server that is about to start. Returns where the server must
 * listen.
 *
 * @param before where the server listened before, in this process; null the first time.
 * @throws EmbeddedPostgresError when the port is taken, or the socket's directory belongs to another user.
 */
export async function prepareToListen(
  options: { readonly listen: Listen; readonly dataDirectory: string; readonly runAs: RunAs },
  before: ServerLocation | null,
): Promise<ServerLocation> {
  const { listen } = options;
  if (listen.kind === "socket") {
    const place = socketIn(listen.directory);
    await readySocketDirectory(place, options);
    return place;
  }
  const wanted = before?.port ?? listen.port;
  const port = wanted ?? (await choosePort(listen.rememberedPort));
  if (wanted !== null && !(await isPortFree(wanted))) {
    throw new EmbeddedPostgresError(`port ${wanted} on 127.0.0.1 is in use by another process`);
  }
  return loopback(port);
}
