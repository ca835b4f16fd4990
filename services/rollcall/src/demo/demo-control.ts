import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { Failure } from "@rollcall/cli";
import type { Demo } from "./demo.ts";

/** The actions on a machine of a running demo. */
export const DEMO_ACTIONS = ["crash", "freeze", "start"] as const;
export type DemoAction = (typeof DEMO_ACTIONS)[number];

const MOST_BYTES = 1_000;

/** The socket at which a running demo listens. Only its user can connect. */
function socketOf(folder: string): string {
  return join(folder, "control.sock");
}

/** Listen for the commands `rollcall demo crash NODE` and the like. */
export async function listenForActions(folder: string, demo: Demo): Promise<Server> {
  const path = socketOf(folder);
  rmSync(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let text = "";
    socket.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      if (text.length > MOST_BYTES) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("end", async () => {
      const [action = "", name = ""] = text.trim().split(" ");
      const answer = await act(demo, action, name).then(
        (said) => ({ ok: true, text: said }),
        (error: unknown) => ({ ok: false, text: error instanceof Error ? error.message : String(error) }),
      );
      socket.end(JSON.stringify(answer));
    });
  });
  const before = process.umask(0o177);
  server.listen(path);
  process.umask(before);
  await once(server, "listening");
  return server;
}

async function act(demo: Demo, action: string, name: string): Promise<string> {
  if (action === "crash") return demo.crash(name);
  if (action === "freeze") return demo.freeze(name);
  if (action === "start") return demo.revive(name);
  throw new Failure(`unknown action ${action}`);
}

/** The failure to reach a demo. */
export class NoDemo extends Failure {}

/**
 * Ask the running demo of a folder to carry out an action. Returns a description of what happened. Throws
 * Failure when the demo refuses or cannot be reached.
 */
export async function requestAction(folder: string, action: DemoAction, name: string): Promise<string> {
  const socket = connect(socketOf(folder));
  try {
    await once(socket, "connect");
  } catch (cause) {
    throw new NoDemo(`no demo is running in ${folder}: start it with \`rollcall demo\``, { cause });
  }
  socket.end(`${action} ${name}\n`);
  let text = "";
  for await (const more of socket.setEncoding("utf8")) text += more;
  const { ok, text: said }: { ok: boolean; text: string } = JSON.parse(text);
  if (!ok) throw new Failure(said);
  return said;
}
