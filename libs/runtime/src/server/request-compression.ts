import { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { refuse } from "../errors.ts";
import { MESSAGE_LIMIT_BYTES } from "./server-options.ts";

/** The compressions that requests and answers may have, failing with the reasons of the contract. */
export const COMPRESSIONS: Compression[] = [compressionGzip, compressionBrotli].map(
  (compression) => ({
    name: compression.name,
    compress: (bytes) => compression.compress(bytes),
    decompress: (bytes, limit) =>
      compression.decompress(bytes, limit).catch((error: unknown) => {
        throw isTooLarge(error)
          ? refuse(
              "MESSAGE_TOO_LARGE",
              `the message unpacks to more than ${MESSAGE_LIMIT_BYTES} bytes`,
            )
          : refuse("MALFORMED_MESSAGE", `the message is no ${compression.name}`, { cause: error });
      }),
  }),
);

function isTooLarge(error: unknown): boolean {
  const cause: unknown = error instanceof ConnectError ? error.cause : undefined;
  if (typeof cause !== "object" || cause === null) return false;
  return "code" in cause && cause.code === "ERR_BUFFER_TOO_LARGE";
}
