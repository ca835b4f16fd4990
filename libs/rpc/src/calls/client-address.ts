import type net from "node:net";

/** The headers in which a proxy names its client. */
interface ForwardingHeaders {
  readonly xForwardedFor: string | undefined;
  readonly forwarded: string | undefined;
}

/**
 * Tells the address that a call comes from, by the socket's peer and what a proxy says. The domain's clientAddress() is
 * what decides.
 *
 * @param peer as HOST:PORT.
 */
export type ClientAddress = (peer: string, headers: ForwardingHeaders) => string;

/** Headers as Node.js gives them. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The address that a call comes from; the peer's where no proxy is trusted. */
export function addressOf(peer: string, headers: Headers, clientAddress: ClientAddress | undefined): string {
  if (clientAddress === undefined) return peer;
  const xForwardedFor = textOf(headers["x-forwarded-for"]);
  return clientAddress(peer, { xForwardedFor, forwarded: textOf(headers.forwarded) });
}

/** A call of grpc-js, as far as it tells where it comes from. */
interface GrpcCall {
  readonly metadata: { get(name: string): readonly (string | Buffer)[] };
  getPeer(): string;
}

/** The same of a call of grpc-js. */
export function grpcAddressOf(call: GrpcCall, clientAddress: ClientAddress | undefined): string {
  const peer = call.getPeer();
  if (clientAddress === undefined) return peer;
  const texts = (name: string) => call.metadata.get(name).map(String);
  const named = (name: string) => (texts(name).length === 0 ? undefined : texts(name));
  const headers = { "x-forwarded-for": named("x-forwarded-for"), forwarded: named("forwarded") };
  return addressOf(peer, headers, clientAddress);
}

/** Several headers of one name are one list. */
function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(",") : value;
}

/** Whether an address, as sockets name it, in brackets or not, is of this machine alone. */
export function isLoopbackAddress(address: string): boolean {
  const plain = address.replace(/^\[(.*)\]$/, "$1").replace(/^::ffff:/i, "");
  return plain === "::1" || /^127(?:\.\d{1,3}){3}$/.test(plain);
}

/** The other end of a connection as HOST:PORT, an IPv6 address in brackets: what limits and logs know a caller by. */
export function peerOf({
  remoteAddress = "",
  remotePort = 0,
}: Pick<net.Socket, "remoteAddress" | "remotePort">): string {
  return remoteAddress.includes(":") ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
