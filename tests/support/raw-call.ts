import { type DescMethod, fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { ErrorInfoSchema } from "../../libs/api/src/gen/google/rpc/error_details_pb.ts";

/**
 * The result of a call: "ok", or the code with the reason in its ErrorInfo, for example "permission_denied
 * ROLE_TOO_LOW".
 */
export type CallOutcome = string;

const ERROR_INFO = "google.rpc.ErrorInfo";
/** The flag of the frame that ends a stream. */
const END_OF_STREAM = 2;
const HEAD_BYTES = 5;

/**
 * Call a method with Connect over HTTP, without a client library. The message is empty by default. If the method
 * returns a stream, the message is always empty, and the call waits for the first message or the end.
 */
export function rawCall(
  baseUrl: string,
  method: DescMethod,
  authorization: string | null,
  more: Readonly<Record<string, string>> = {},
  message: JsonObject = {},
): Promise<CallOutcome> {
  const url = `${baseUrl}/${method.parent.typeName}/${method.name}`;
  const headers = { ...more, ...(authorization === null ? {} : { authorization }) };
  return method.methodKind === "unary" ? unary(url, headers, message) : stream(url, headers);
}

async function unary(url: string, headers: Readonly<Record<string, string>>, message: JsonObject) {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(message),
  });
  const answer: unknown = await response.json();
  return response.ok ? "ok" : outcomeOf(answer);
}

async function stream(url: string, headers: Readonly<Record<string, string>>) {
  const leaving = new AbortController();
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/connect+json" },
    body: frame("{}"),
    signal: leaving.signal,
  });
  try {
    const { flags, text } = await firstFrame(response);
    if (flags !== END_OF_STREAM) return "ok";
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    return error === undefined ? "ok" : outcomeOf(error);
  } finally {
    leaving.abort();
  }
}

function frame(text: string): Buffer {
  const body = Buffer.from(text);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

async function firstFrame({ body }: Response) {
  let all = Buffer.alloc(0);
  for await (const chunk of body ?? []) {
    all = Buffer.concat([all, chunk]);
    const length = all.length < HEAD_BYTES ? Number.POSITIVE_INFINITY : all.readUInt32BE(1);
    if (all.length < HEAD_BYTES + length) continue;
    const text = all.subarray(HEAD_BYTES, HEAD_BYTES + length).toString();
    return { flags: all[0], text };
  }
  throw new Error("the stream ended without a frame");
}

interface WireError {
  readonly code: string;
  readonly details?: readonly { readonly type: string; readonly value: string }[];
}

function outcomeOf(answer: unknown): CallOutcome {
  const { code, details = [] } = answer as WireError;
  const info = details.find(({ type }) => type === ERROR_INFO);
  if (info === undefined) return `${code} without a reason`;
  const { reason } = fromBinary(ErrorInfoSchema, Buffer.from(info.value, "base64"));
  return `${code} ${reason}`;
}
