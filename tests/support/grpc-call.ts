import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { ErrorInfoSchema } from "../../libs/api/src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../libs/api/src/gen/google/rpc/status_pb.ts";
import type { CallOutcome } from "./raw-call.ts";

/** An empty message: the uncompressed flag and a length of 0. */
const EMPTY = Buffer.alloc(5);
const OK = "0";
const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const OUT_OF_RANGE = 11;
const UNAUTHENTICATED = 16;
const NAMES: Readonly<Record<number, string>> = {
  [INVALID_ARGUMENT]: "invalid_argument",
  [PERMISSION_DENIED]: "permission_denied",
  [OUT_OF_RANGE]: "out_of_range",
  [UNAUTHENTICATED]: "unauthenticated",
};

/** The open sessions, keyed by base URL. */
const sessions = new Map<string, ClientHttp2Session>();

/**
 * Call a method with an empty message as plain gRPC over HTTP/2, without a library. If the method returns a stream,
 * wait for the first message or the end.
 */
export async function grpcCall(
  baseUrl: string,
  method: DescMethod,
  authorization: string | null,
  more: Readonly<Record<string, string>> = {},
): Promise<CallOutcome> {
  const headers = { ...more, ...(authorization === null ? {} : { authorization }) };
  const session = sessionWith(baseUrl);
  try {
    return await callOn(session, method, headers);
  } catch (error) {
    // Try again, because the server may end an idle session while the call is on its way.
    if (!hasEnded(session)) throw error;
    return callOn(sessionWith(baseUrl), method, headers);
  }
}

/** Return a usable session. A server ends sessions that are idle for a minute and a half. */
function sessionWith(baseUrl: string): ClientHttp2Session {
  const known = sessions.get(baseUrl);
  if (known !== undefined && !hasEnded(known)) return known;
  const session = connect(baseUrl);
  // Ignore the error here, because the calls on the session fail and report it.
  session.on("error", () => {});
  sessions.set(baseUrl, session);
  return session;
}

function hasEnded({ closed, destroyed }: ClientHttp2Session): boolean {
  return closed || destroyed;
}

function callOn(
  session: ClientHttp2Session,
  method: DescMethod,
  headers: Readonly<Record<string, string>>,
): Promise<CallOutcome> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ":method": "POST",
      ":path": `/${method.parent.typeName}/${method.name}`,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    const onEnd = (headers: IncomingHttpHeaders) => {
      if (headers["grpc-status"] !== undefined) resolve(outcomeOf(headers));
    };
    // Read the status from the headers, because they contain it if a call is refused immediately.
    stream.on("response", onEnd).on("trailers", onEnd).on("error", reject);
    stream.on("data", () => {
      if (method.methodKind === "unary") return;
      resolve("ok");
      stream.close();
    });
    stream.on("close", () => reject(new Error(`${method.name} ended without a status`)));
    stream.end(EMPTY);
  });
}

/** Close the sessions that calls have opened. */
export function endGrpcCalls(): void {
  for (const session of sessions.values()) session.destroy();
  sessions.clear();
}

function outcomeOf(headers: IncomingHttpHeaders): CallOutcome {
  if (headers["grpc-status"] === OK) return "ok";
  const written = String(headers["grpc-status-details-bin"] ?? "");
  const { code, details } = fromBinary(StatusSchema, Buffer.from(written, "base64"));
  const info = details.find(({ typeUrl }) => typeUrl.endsWith(ErrorInfoSchema.typeName));
  const name = NAMES[code];
  if (info === undefined) return `${name ?? code} without a reason`;
  return `${name ?? code} ${fromBinary(ErrorInfoSchema, info.value).reason}`;
}
