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

// An error's JSON is far smaller; this only bounds what is read.
const LARGEST_ERROR_BYTES = 1_048_576;
const ENVELOPE_HEADER_BYTES = 5;

/**
 * Give the errors of unary calls that never reached an interceptor (a message that is too large or cannot be decoded,
 * an unknown compression, a bad timeout) the code and the reason that the contract promises. Connect makes these errors
 * and writes them by itself, so the answer is corrected where it is already an error; answers that are none pass
 * untouched.
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

/** gRPC: the status is in the trailers, which are complete when they are read, after the body. */
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

/** gRPC-Web: the trailers are the last chunk of the body. */
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
    // A compressed trailer has a further flag; errors without details are too small to be compressed.
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
  const completed = complete(findTrailerError(trailer));
  if (completed === null) return false;
  setTrailerStatus(trailer, completed);
  onError(completed);
  return true;
}

/** Connect: the error is the whole body, as JSON. */
async function completeConnect(
  response: UniversalServerResponse,
  onError: (error: ConnectError) => void,
): Promise<UniversalServerResponse> {
  const { body, header } = response;
  if (body === undefined || body === null || header?.has("content-encoding")) return response;
  const bytes = await readAllBytes(body, LARGEST_ERROR_BYTES);
  const fallback = new ConnectError("internal error", Code.Internal);
  const completed = complete(errorFromJsonBytes(bytes, undefined, fallback));
  if (completed === null) return { ...response, body: createAsyncIterable([bytes]) };
  onError(completed);
  const completedBytes = errorToJsonBytes(completed, undefined);
  header?.set("content-length", String(completedBytes.byteLength));
  return {
    ...response,
    status: codeToHttpStatus(completed.code),
    body: createAsyncIterable([completedBytes]),
  };
}

/** The error with its reason; null when there is none, when it has one already, or gets none. */
function complete(error: ConnectError | undefined): ConnectError | null {
  if (error === undefined || describeError(error).reason !== undefined) return null;
  const mapped = mapError(error);
  return mapped === error ? null : mapped;
}
