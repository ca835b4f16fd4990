import { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { refuse } from "@rollcall/errors";
import { type BodyCheck, checkParts, checkSize } from "../calls/message-parts.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { UnpackingQueue } from "../limits/unpacking-queue.ts";
import { MESSAGE_LIMIT_BYTES } from "./server-options.ts";

const queue = new UnpackingQueue();

/**
 * The compressions that requests and answers may have. Connect only compresses answers with them: requests are unpacked
 * before it reads them, where the schema and the format are known by which a message is checked.
 */
export const COMPRESSIONS: Compression[] = [compressionGzip, compressionBrotli].map((compression) => ({
  name: compression.name,
  compress: (bytes) => compression.compress(bytes),
  decompress: () => Promise.reject(new Error("a compressed message was not unpacked before it was read")),
}));

/** Unpacks a message. */
export type Unpack = (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>;

/**
 * What unpacks messages of an encoding; null for identity, and for encodings that are not supported. Messages of a
 * whole process are unpacked one after the other: each takes a thread of Node's pool, and with several the event loop
 * would have no core for itself. Rejects with MESSAGE_TOO_LARGE and MALFORMED_MESSAGE.
 */
export function unpackerOf(encoding: string): Unpack | null {
  const compression = [compressionGzip, compressionBrotli].find(({ name }) => name === encoding);
  return compression === undefined ? null : (bytes) => queue.add(() => unpack(compression, bytes));
}

/** The URL of a Connect GET request with an empty message in place of its own. */
export function emptiedUrl(text: string): string {
  const url = new URL(text);
  url.search = new URLSearchParams({ connect: "v1", encoding: "json", message: "{}" }).toString();
  return url.toString();
}

/**
 * The URL of a Connect GET request with its message unpacked and checked. Rejects with MESSAGE_TOO_LARGE and
 * MALFORMED_MESSAGE.
 */
export async function unpackedUrl(text: string, { schema, source, mostBytes }: BodyCheck): Promise<string> {
  const url = new URL(text);
  const query = url.searchParams;
  const unpackMessage = unpackerOf(query.get("compression") ?? "");
  // Without compression it is no longer than the headers of a request may be.
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
      ? refuse("MESSAGE_TOO_LARGE", `the message unpacks to more than ${MESSAGE_LIMIT_BYTES} bytes`)
      : refuse("MALFORMED_MESSAGE", `the message is no ${compression.name}`, { cause: error });
  }
}

function isTooLarge(error: unknown): boolean {
  const cause: unknown = error instanceof ConnectError ? error.cause : undefined;
  if (typeof cause !== "object" || cause === null) return false;
  return "code" in cause && cause.code === "ERR_BUFFER_TOO_LARGE";
}
