import { once } from "node:events";
import type { Server } from "node:net";

/** Let a server listen on a free port, and return the port. */
export async function listening(server: Server, host = "127.0.0.1"): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
