import { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { refuse, toConnectError } from "@rollcall/errors";
import type { HttpRequest } from "../calls/http-handler.ts";
import { type BodyCheck, checkParts, checkSize } from "../calls/message-parts.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { UnpackingQueue } from "../limits/unpacking-queue.ts";
import { MESSAGE_LIMIT_BYTES } from "../server-options.ts";

const queue = new UnpackingQueue();

/**
 * The supported compressions of requests and responses. Connect uses them only to compress responses. Requests are
 * decompressed and checked before Connect reads them, because Connect's decompression does not know the schema and
 * format that the check needs.
 */
export const COMPRESSIONS: Compression[] = [compressionGzip, compressionBrotli].map((compression) => ({
  name: compression.name,
  compress: (bytes) => compression.compress(bytes),
  decompress: () => Promise.reject(new Error("a compressed message was not decompressed before it was read")),
}));

/** The names of the headers that name the encoding of a request's messages, and the encodings that a server accepts. */
export function encodingHeaders(contentType: string): { readonly given: string; readonly accepted: string } {
  if (/^application\/grpc/i.test(contentType)) return { given: "grpc-encoding", accepted: "grpc-accept-encoding" };
  return /^application\/connect\+/i.test(contentType)
    ? { given: "connect-content-encoding", accepted: "connect-accept-encoding" }
    : { given: "content-encoding", accepted: "accept-encoding" };
}

/**
 * The error for a request whose encoding is not supported. Its metadata, which is sent as headers, names the supported
 * ones, as gRPC and Connect prescribe. Null if the encoding is supported.
 */
export function refuseEncoding({ headers, url, method }: HttpRequest): ConnectError | null {
  const { given, accepted } = encodingHeaders(headers["content-type"] ?? "");
  const isGet = method === "GET";
  const encoding = isGet ? new URLSearchParams(url?.split("?")[1]).get("compression") : headers[given];
  if (typeof encoding !== "string" || encoding === "" || encoding === "identity") return null;
  const names = COMPRESSIONS.map(({ name }) => name);
  if (names.includes(encoding)) return null;
  // Do not include the encoding in the message, because it can be long.
  const text = `this port accepts messages compressed with ${names.join(" or ")}`;
  const error = toConnectError(refuse("COMPRESSION_NOT_SUPPORTED", text));
  error.metadata.set(accepted, names.join(","));
  return error;
}

/** Decompresses a message. */
export type Unpack = (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>;

/**
 * Get the function that decompresses messages of an encoding; null for identity. A process decompresses one message at
 * a time, because each takes a thread of Node's pool, and several would leave the event loop no core. The function
 * rejects with MESSAGE_TOO_LARGE or MALFORMED_MESSAGE.
 */
export function unpackerOf(encoding: string): Unpack | null {
  const compression = [compressionGzip, compressionBrotli].find(({ name }) => name === encoding);
  return compression === undefined ? null : (bytes) => queue.add(() => unpack(compression, bytes));
}

/** Replace the message in the URL of a Connect GET request with an empty one. */
export function emptiedUrl(text: string): string {
  const url = new URL(text);
  url.search = new URLSearchParams({ connect: "v1", encoding: "json", message: "{}" }).toString();
  return url.toString();
}

/**
 * Decompress and check the message in the URL of a Connect GET request. Returns the new URL. Rejects with
 * MESSAGE_TOO_LARGE or MALFORMED_MESSAGE.
 */
export async function unpackedUrl(text: string, { schema, source, mostBytes }: BodyCheck): Promise<string> {
  const url = new URL(text);
  const query = url.searchParams;
  const unpackMessage = unpackerOf(query.get("compression") ?? "");
  // Do not check an uncompressed message: it is small, because the size of request headers is limited.
  if (unpackMessage === null) return text;
  const message = await unpackMessage(Buffer.from(query.get("message") ?? "", "base64url"));
  checkSize(message.length, mostBytes);
  const format = query.get("encoding") === "json" ? "json" : "binary";
  await loopBudget.do(source, () => checkParts(schema, message, format));
  query.delete("compression");
  query.set("base64", "1");
  query.set("message", Buffer.from(message).toString("base64url"));
  return url.toString();
}

async function unpack(compression: Compression, bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await compression.decompress(new Uint8Array(bytes), MESSAGE_LIMIT_BYTES);
  } catch (error) {
    throw isTooLarge(error)
      ? refuse("MESSAGE_TOO_LARGE", `the decompressed message is larger than the limit of ${MESSAGE_LIMIT_BYTES} bytes`)
      : refuse("MALFORMED_MESSAGE", `the message is not valid ${compression.name}`, { cause: error });
  }
}

function isTooLarge(error: unknown): boolean {
  const cause: unknown = error instanceof ConnectError ? error.cause : undefined;
  if (typeof cause !== "object" || cause === null) return false;
  return "code" in cause && cause.code === "ERR_BUFFER_TOO_LARGE";
}
