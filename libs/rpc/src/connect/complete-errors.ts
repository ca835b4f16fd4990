import { Code, ConnectError } from "@connectrpc/connect";
import {
  createAsyncIterable,
  encodeEnvelope,
  readAllBytes,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { describeError, mapError } from "@rollcall/errors";

// Maximum number of bytes to read of an error's JSON. Errors are far smaller.
const LARGEST_ERROR_BYTES = 1_048_576;
const ENVELOPE_HEADER_BYTES = 5;

/**
 * Report the errors of unary calls, and add the documented code and reason to those that never reached an interceptor:
 * a message that cannot be decoded, a bad timeout. Connect creates and writes these errors itself, so this corrects a
 * response that is already an error. It does not touch other responses.
 */
export function completeErrors(
  response: UniversalServerResponse,
  onError: (error: ConnectError) => void,
): UniversalServerResponse | Promise<UniversalServerResponse> {
  const contentType = response.header?.get("content-type") ?? "";
  if (contentType.startsWith("application/grpc-web")) return completeGrpcWeb(response, onError);
  if (contentType.startsWith("application/grpc")) return completeGrpc(response, onError);
  if (response.status >= 400 && contentType.startsWith("application/json")) {
    return completeConnect(response, onError);
  }
  return response;
}

/**
 * Complete a gRPC error. Its status is in the trailers, which are complete only after the body was read. So the
 * trailers are corrected when they are read.
 */
function completeGrpc(
  response: UniversalServerResponse,
  onError: (error: ConnectError) => void,
): UniversalServerResponse {
  const { trailer } = response;
  if (trailer === undefined) return response;
  return {
    ...response,
    get trailer() {
      completeTrailer(trailer, onError);
      return trailer;
    },
  };
}

/** Complete a gRPC-Web error. The trailers are the last chunk of the body. */
function completeGrpcWeb(
  response: UniversalServerResponse,
  onError: (error: ConnectError) => void,
): UniversalServerResponse {
  const { body } = response;
  if (body === undefined || body === null) return response;
  return { ...response, body: completeLastChunk(body, onError) };
}

async function* completeLastChunk(chunks: AsyncIterable<Uint8Array>, onError: (error: ConnectError) => void) {
  for await (const chunk of chunks) {
    // Pass on all but an uncompressed trailer. A compressed trailer has another flag, but an error without details is
    // too small to be compressed.
    if (chunk[0] !== trailerFlag) {
      yield chunk;
      continue;
    }
    const trailer = trailerParse(chunk.subarray(ENVELOPE_HEADER_BYTES));
    const changed = completeTrailer(trailer, onError);
    yield changed ? encodeEnvelope(trailerFlag, trailerSerialize(trailer)) : chunk;
  }
}

function completeTrailer(trailer: Headers, onError: (error: ConnectError) => void): boolean {
  const error = findTrailerError(trailer);
  if (error === undefined) return false;
  const completed = complete(error);
  onError(completed ?? error);
  if (completed !== null) setTrailerStatus(trailer, completed);
  return completed !== null;
}

/** Complete a Connect error. The error is the whole body, as JSON. */
async function completeConnect(
  response: UniversalServerResponse,
  onError: (error: ConnectError) => void,
): Promise<UniversalServerResponse> {
  const { body, header } = response;
  if (body === undefined || body === null || header?.has("content-encoding")) return response;
  const bytes = await readAllBytes(body, LARGEST_ERROR_BYTES);
  const fallback = new ConnectError("internal error", Code.Internal);
  const error = errorFromJsonBytes(bytes, undefined, fallback);
  const completed = complete(error);
  onError(completed ?? error);
  if (completed === null) return { ...response, body: createAsyncIterable([bytes]) };
  const completedBytes = errorToJsonBytes(completed, undefined);
  header?.set("content-length", String(completedBytes.byteLength));
  return {
    ...response,
    status: codeToHttpStatus(completed.code),
    body: createAsyncIterable([completedBytes]),
  };
}

/** Add the reason to an error. Returns null if it already has a reason, or if no reason applies. */
function complete(error: ConnectError): ConnectError | null {
  if (describeError(error).reason !== undefined) return null;
  const mapped = mapError(error);
  return mapped === error ? null : mapped;
}
