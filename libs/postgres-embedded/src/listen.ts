import type { Logger } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";
import { loopback, type Place, socketIn } from "./place.ts";
import { choosePort, isPortFree, rememberedPort } from "./ports.ts";
import type { RunAs } from "./run-as.ts";
import { chooseSocketDirectory, readySocketDirectory } from "./socket-directory.ts";

/** Where a server is to listen. */
export type Listen =
  | { readonly kind: "socket"; readonly directory: string }
  | {
      readonly kind: "loopback";
      /** Insist on this port. */
      readonly port: number | null;
      /** Tried first when no port is insisted on. */
      readonly rememberedPort: number | null;
    };

/** What the choice depends on. */
export interface ListenInput {
  readonly dir: string;
  readonly runAs: RunAs;
  readonly listen: Listen["kind"];
  /** Of loopback. */
  readonly port: number | null;
  readonly log: Logger;
}

/** Decide where the server of a directory listens: on a socket unless there can be none, or loopback is asked for. */
export async function chooseListen(input: ListenInput): Promise<Listen> {
  const { dir, runAs, listen, port, log } = input;
  if (listen === "socket") {
    const found = await chooseSocketDirectory({ dir, runAs });
    if (found.directory !== null) return { kind: "socket", directory: found.directory };
    log.warn(
      { why: found.why },
      "postgres cannot have a socket, it listens on loopback, where every user of this machine can take up its " +
        "connections",
    );
  }
  return { kind: "loopback", port, rememberedPort: await rememberedPort(dir) };
}

/**
 * Make the place ready for a server that is about to start, and name it.
 *
 * @param before where it listened before, in this process; null the first time.
 * @throws EmbeddedPostgresError when the port is taken, or the directory of the socket is not ours.
 */
export async function prepareToListen(
  options: { readonly listen: Listen; readonly dataDirectory: string; readonly runAs: RunAs },
  before: Place | null,
): Promise<Place> {
  const { listen } = options;
  if (listen.kind === "socket") {
    const place = socketIn(listen.directory);
    await readySocketDirectory(place, options);
    return place;
  }
  const wanted = before?.port ?? listen.port;
  const port = wanted ?? (await choosePort(listen.rememberedPort));
  if (wanted !== null && !(await isPortFree(wanted))) {
    throw new EmbeddedPostgresError(`port ${wanted} on 127.0.0.1 is taken by another process`);
  }
  return loopback(port);
}
