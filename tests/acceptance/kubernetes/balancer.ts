import { once } from "node:events";
import { createConnection, createServer, type NetConnectOpts, type Socket } from "node:net";

/** A Kubernetes Service: one address that forwards to the ready endpoints. */
export interface Balancer {
  close(): Promise<void>;
}

/**
 * Forward each connection to an address to the next of several targets. Open connections keep their target when
 * the targets change, as with kube-proxy.
 *
 * @param targets called for each connection.
 */
export async function startBalancer(
  place: { readonly host: string; readonly port: number },
  targets: () => readonly NetConnectOpts[],
): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const all = targets();
    turn += 1;
    const target = all[turn % Math.max(all.length, 1)];
    if (target === undefined) {
      client.resetAndDestroy();
      return;
    }
    const behind = createConnection({ ...target, allowHalfOpen: true });
    for (const [one, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(place.port, place.host);
  await once(server, "listening");
  return {
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      if (server.listening) await once(server, "close");
    },
  };
}
