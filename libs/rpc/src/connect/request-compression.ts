import { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { refuse } from "@rollcall/errors";
import { checkParts } from "../calls/message-parts.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { UnpackingQueue } from "../limits/unpacking-queue.ts";
import { MESSAGE_LIMIT_BYTES } from "./server-options.ts";

const queue = new UnpackingQueue();
/** The sender of a compressed message is unknown here; messages are processed one after the other. */
const UNPACKED = "unpacked";

/**
 * The compressions that requests and answers may have, failing with the reasons of the contract. Requests of a whole
 * process are unpacked one after the other: each takes a thread of Node's pool, and with several the event loop would
 * have no core for itself.
 */
export const COMPRESSIONS: Compression[] = [compressionGzip, compressionBrotli].map((compression) => ({
  name: compression.name,
  compress: (bytes) => compression.compress(bytes),
  decompress: async (bytes, limit) => {
    const unpacked = await queue.add(() => unpack(compression, bytes, limit));
    return await loopBudget.do(UNPACKED, () => {
      checkParts(unpacked);
      return unpacked;
    });
  },
}));

async function unpack(
  compression: Compression,
  bytes: Parameters<Compression["decompress"]>[0],
  limit: number,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await compression.decompress(bytes, limit);
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
