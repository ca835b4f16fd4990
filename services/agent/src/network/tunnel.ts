import { request as httpRequest } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { type Address, formatAddress } from "@rollcall/config";
import type { ClientTls } from "@rollcall/identity";
import { type HttpProxy, shownProxy } from "./proxy.ts";

/**
 * A proxy that cannot be reached, or does not open a tunnel. The message says what to do, and contains no
 * credentials.
 */
class ProxyError extends Error {
  override readonly name = "ProxyError";
}

/** A route to a server through a proxy. */
export interface Way {
  readonly proxy: HttpProxy;
  readonly target: Address;
}

/** The time limit for connecting to a proxy, and for opening a tunnel. */
const LIMIT_MS = 10_000;

/** Connect to a server through a proxy. The socket is closed when the signal aborts. Rejects with a ProxyError. */
export async function connectByProxy(way: Way, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const { host, port } = way.proxy;
  const socket = connect({ host, port, signal });
  // The CONNECT request handles the socket's errors until the tunnel is open. After that, the caller handles them.
  return openTunnel(socket, way);
}

/**
 * Make a proxy open a tunnel over a connection to it. If the proxy uses TLS, the connection is secured first. Data
 * written to the returned connection goes to the target. If the proxy refuses, the connection is closed. Rejects with
 * a ProxyError.
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
    const timer = setTimeout(() => fail(`did not open a tunnel to ${to} within ${LIMIT_MS / 1000} s`), LIMIT_MS);
    request.on("error", (error) => fail(`cannot be used to reach ${to}: ${error.message}`, error));
    request.once("connect", ({ statusCode = 0, statusMessage = "" }, _, head: Buffer) => {
      if (statusCode < 200 || statusCode > 299) {
        fail(
          `refused to open a tunnel to ${to}: ${statusCode} ${statusMessage.slice(0, MOST_WORDS)}${hint(statusCode)}`,
        );
        return;
      }
      clearTimeout(timer);
      // Put back the bytes after the proxy's response, because they are the first bytes of the server.
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.end();
  });
}

/** Secure a tunnel to a server with TLS, and verify the server's name. */
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

/**
 * The proxy is not part of the control plane, so its certificate is valid for its own name and is verified with
 * separate authorities.
 */
function secureProxy(socket: Socket, { host, authorities }: HttpProxy): TLSSocket {
  return connectTls({
    ...{ socket, host, minVersion: "TLSv1.2" },
    ...(authorities === undefined ? {} : { ca: authorities }),
    ...(isIP(host) === 0 ? { servername: host } : {}),
  });
}

/** The maximum length of the proxy's own text in an error message. */
const MOST_WORDS = 100;

const HINTS: ReadonlyMap<number, string> = new Map([
  [407, "; set its user and password in Compute.Proxy: http://USER:PASSWORD@HOST:PORT"],
  [403, "; allow this address at the proxy, or add it to Compute.NoProxy"],
]);

function hint(status: number): string {
  return HINTS.get(status) ?? "";
}
