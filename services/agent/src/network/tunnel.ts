import { request as httpRequest } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { type Address, formatAddress } from "@rollcall/config";
import type { ClientTls } from "@rollcall/identity";
import { type HttpProxy, shownProxy } from "./proxy.ts";

/** A proxy that cannot be reached, or opens no tunnel. The message says what to do, and holds no credentials. */
class ProxyError extends Error {
  override readonly name = "ProxyError";
}

/** A way to a server by a proxy. */
export interface Way {
  readonly proxy: HttpProxy;
  readonly target: Address;
}

/** How long a proxy may take to be connected, and to open a tunnel. */
const LIMIT_MS = 10_000;

/** Connect to a server by a proxy. The socket ends with the signal. Rejects with a ProxyError. */
export async function connectByProxy(way: Way, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const { host, port } = way.proxy;
  const socket = connect({ host, port, signal });
  // Its request hears errors until the tunnel is open; its next owner listens then.
  return openTunnel(socket, way);
}

/**
 * Have a proxy open a tunnel over a connection to it, which is secured first where the proxy speaks TLS. What is
 * written to the connection that is returned goes to the target. It is ended when the proxy refuses. Rejects with a
 * ProxyError.
 */
export function openTunnel(connection: Socket, { proxy, target }: Way): Promise<Socket> {
  const socket = proxy.isSecure ? secureProxy(connection, proxy) : connection;
  const to = formatAddress(target);
  const { authorization } = proxy;
  const request = httpRequest({
    method: "CONNECT",
    path: to,
    headers: { host: to, ...(authorization === null ? {} : { "proxy-authorization": authorization }) },
    createConnection: () => socket,
  });
  return new Promise((resolve, reject) => {
    const fail = (problem: string, cause?: unknown) => {
      clearTimeout(timer);
      socket.destroy();
      connection.destroy();
      reject(new ProxyError(`the proxy ${shownProxy(proxy)} ${problem}`, { cause }));
    };
    const timer = setTimeout(() => fail(`opens no tunnel to ${to} within ${LIMIT_MS / 1000} s`), LIMIT_MS);
    request.on("error", (error) => fail(`cannot be used to reach ${to}: ${error.message}`, error));
    request.once("connect", ({ statusCode = 0, statusMessage = "" }, _, head: Buffer) => {
      if (statusCode < 200 || statusCode > 299) {
        fail(
          `refuses to open a tunnel to ${to}: ${statusCode} ${statusMessage.slice(0, MOST_WORDS)}${hint(statusCode)}`,
        );
        return;
      }
      clearTimeout(timer);
      // The first bytes of the server may have come with the proxy's answer.
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.end();
  });
}

/** Speak TLS to a server through a tunnel, with the server's own name checked. */
export function secureTunnel(tunnel: Socket, { host }: Address, tls: ClientTls): TLSSocket {
  const name = tls.servername ?? host;
  return connectTls({
    ...tls,
    socket: tunnel,
    host,
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.2",
    ...(isIP(name) === 0 ? { servername: name } : {}),
  });
}

/** The proxy is no part of the control plane: its certificate is for its own name, by authorities of its own. */
function secureProxy(socket: Socket, { host, authorities }: HttpProxy): TLSSocket {
  return connectTls({
    ...{ socket, host, minVersion: "TLSv1.2" },
    ...(authorities === undefined ? {} : { ca: authorities }),
    ...(isIP(host) === 0 ? { servername: host } : {}),
  });
}

/** Of a proxy's own words. */
const MOST_WORDS = 100;

const HINTS: ReadonlyMap<number, string> = new Map([
  [407, "; give its user and password in Compute.Proxy, http://USER:PASSWORD@HOST:PORT"],
  [403, "; have it allow this address, or name the address in Compute.NoProxy"],
]);

function hint(status: number): string {
  return HINTS.get(status) ?? "";
}
