import type { Answer } from "./send.ts";
import type { WireRequest } from "./wire-request.ts";

/** The problem with a response; null if there is none. */
export type Problem = string | null;

/** Codes that mean a fault of the server, as numbers and as names. */
const FAULTS: ReadonlySet<string> = new Set(["2", "13", "15", "unknown", "internal", "data_loss"]);

/** Internals of the server that no response may contain. No text in a request contains any of them. */
const LEAKS: readonly (readonly [RegExp, string])[] = [
  [/\n\s+at .+[:(]\d+/, "a stack"],
  [/node_modules|\.ts:\d+|\.js:\d+|file:\/\/\//, "a path of the server's files"],
  [/\/(?:home|work|tmp|root|usr|var)\/[\w.-]+\//, "a path"],
  [/syntax error at or near|invalid input syntax|invalid byte sequence/i, "a driver's text"],
  [/violates (?:\w|-)+ constraint|duplicate key value|deadlock detected/i, "a driver's text"],
  [/(?:relation|column|operator|function) .{0,80}does not exist/i, "a driver's text"],
  [/\b(?:select\b.{1,200}\b(?:from|where)|insert into\b.{1,200}\b(?:values|select)|delete from)\b \S+/i, "SQL"],
  // Not every "update" is SQL. Fields of a job begin with "update.", and their bounds with "from".
  [/\bupdate "?\w+"?(?: as \w+)? set\b/i, "SQL"],
  [/\b(?:ECONNREFUSED|ECONNRESET|ENOENT|EPIPE)\b/, "an error of the system"],
  [/Cannot read propert|is not a function|is not iterable|\[object Object\]/, "a bug"],
];

/** Check the response to a request. Returns the problem. */
export function problemIn(request: WireRequest, answer: Answer): Problem {
  const { end, status } = answer;
  if (end === "silent" || end === "cut") return null;
  if (end !== "whole" && end !== "open") return end;
  const code = codeOf(request, answer);
  const text = textOf(answer);
  // gRPC prescribes the code of a fault for this mistake of a caller.
  const isFault = code !== null && FAULTS.has(code) && !text.includes("COMPRESSION_NOT_NAMED");
  if (isFault) return `the code ${code}`;
  if (status >= 500 && code === null) return `HTTP ${status} without an error of the protocol`;
  const leak = LEAKS.find(([pattern]) => pattern.test(text));
  if (leak !== undefined) return `${leak[1]} in the answer`;
  const isForeign = request.path.startsWith("/grpc.");
  if (code !== null && code !== "0" && !isForeign && !text.includes("rollcall.io")) {
    return `the code ${code} without an ErrorInfo`;
  }
  return null;
}

/** Whether a call succeeded as intended. */
export function isAnswered(request: WireRequest, answer: Answer): boolean {
  const code = codeOf(request, answer);
  return code === "0" || (code === null && answer.status === 200);
}

/** Return the code of the call: a number in gRPC, a name in Connect; null if there is none. */
function codeOf({ protocol, isStream }: WireRequest, { status, headers, body }: Answer): string | null {
  const inHead = headers["grpc-status"];
  if (inHead !== undefined) return inHead;
  if (protocol === "grpc-web") return /grpc-status: *(\d+)/i.exec(body.toString("latin1"))?.[1] ?? null;
  if (protocol === "grpc") return null;
  const isJson = (headers["content-type"] ?? "").includes("json");
  const text = body.toString();
  if (isStream && status === 200) return /"error":\{"code":"(\w+)"/.exec(text)?.[1] ?? null;
  if (status < 400 || !isJson) return null;
  return /"code":"(\w+)"/.exec(text)?.[1] ?? null;
}

/** Return all readable text of a response, decoded. */
function textOf({ headers, body }: Answer): string {
  const said = body.subarray(0, 200_000).toString();
  const inBase64 = [...said.matchAll(/"value": ?"([\w+/-]+=*)"|details-bin: ?([\w+/-]+=*)/gi)];
  const message = headers["grpc-message"] ?? "";
  return [
    said,
    message,
    decoded(message),
    ...Object.values(headers),
    Buffer.from(headers["grpc-status-details-bin"] ?? "", "base64").toString(),
    ...inBase64.map(([, value, bin]) => Buffer.from(value ?? bin ?? "", "base64").toString()),
  ].join("\n");
}

function decoded(percents: string): string {
  try {
    return decodeURIComponent(percents);
  } catch {
    return percents;
  }
}
