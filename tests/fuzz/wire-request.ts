import { gzipSync } from "node:zlib";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { binaryMessage } from "./binary-message.ts";
import { damage, damageJson } from "./damage.ts";
import type { Dice } from "./dice.ts";
import { type JsonInput, jsonMessage } from "./json-message.ts";
import type { Taste } from "./taste.ts";

/** The protocol of a call. */
export type Protocol = "grpc" | "grpc-web" | "connect-proto" | "connect-json" | "connect-get";

/** One HTTP request. */
export interface WireRequest {
  readonly protocol: Protocol;
  readonly http: 1 | 2;
  readonly verb: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Whether the method returns a stream, which may stay silent. */
  readonly isStream: boolean;
}

/** Fields that must be valid for a message to pass the first checks, such as a proof. Null if there are none. */
export interface Overlay {
  /** The fields as JSON. They replace the generated fields. */
  readonly json: Readonly<Record<string, JsonInput>>;
  /** The fields in binary. They are appended to the message, and the last value of a field wins. */
  readonly binary: Uint8Array;
}

/** Everything in a call except its message. */
export interface CallFrame {
  readonly authorization: string | null;
  readonly overlay: Overlay | null;
  /** Whether the port supports only gRPC. */
  readonly isGrpcOnly: boolean;
}

/** Create a request of a method. */
export function wireRequest(
  method: DescMethod,
  taste: Taste,
  { authorization, overlay, isGrpcOnly }: CallFrame,
): WireRequest {
  const { dice } = taste;
  const protocol = isGrpcOnly ? "grpc" : dice.pick(protocolsOf(method));
  const isStream = method.methodKind !== "unary";
  const path = `/${method.parent.typeName}/${method.name}`;
  const headers = { ...(authorization === null ? {} : { authorization }), ...oddHeaders(taste) };
  const isJson = protocol === "connect-json" || (protocol === "connect-get" && dice.chance(0.5));
  const content = isJson ? Buffer.from(jsonText(method, taste, overlay)) : binaryContent(method, taste, overlay);
  const http = protocol === "grpc" ? 2 : dice.pick([1, 2] as const);
  const common = { protocol, http, isStream };
  if (protocol === "connect-get") {
    const query = getQuery(content, isJson, dice);
    return { ...common, verb: "GET", path: `${path}?${query}`, headers, body: new Uint8Array() };
  }
  const framed = frame(protocol, content, isStream, taste);
  const type = contentType(protocol, isStream);
  const all = { "content-type": type, ...framed.headers, ...headers };
  return { ...common, verb: "POST", path, headers: all, body: framed.body };
}

/** Frame a message as gRPC does. */
export function envelope(content: Uint8Array, flags = 0): Uint8Array {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(content.length, 1);
  return Buffer.concat([head, content]);
}

function protocolsOf(method: DescMethod): readonly Protocol[] {
  switch (method.methodKind) {
    case "unary":
      return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
        ? ["grpc", "grpc-web", "connect-proto", "connect-json", "connect-get"]
        : ["grpc", "grpc-web", "connect-proto", "connect-json"];
    case "server_streaming":
      return ["grpc", "grpc-web", "connect-proto", "connect-json"];
    default:
      // Use only gRPC, because bidirectional streams need HTTP/2 and half of Connect's clients do not support them.
      return ["grpc"];
  }
}

function contentType(protocol: Protocol, isStream: boolean): string {
  switch (protocol) {
    case "grpc":
      return "application/grpc";
    case "grpc-web":
      return "application/grpc-web+proto";
    case "connect-json":
      return isStream ? "application/connect+json" : "application/json";
    default:
      return isStream ? "application/connect+proto" : "application/proto";
  }
}

function binaryContent(method: DescMethod, taste: Taste, overlay: Overlay | null): Uint8Array {
  const { dice } = taste;
  const made = binaryMessage(method.input, taste);
  const whole = overlay === null ? made : Buffer.concat([made, overlay.binary]);
  return taste.isNasty(0.5) ? damage(whole, dice) : whole;
}

function jsonText(method: DescMethod, taste: Taste, overlay: Overlay | null): string {
  const { dice } = taste;
  const text = JSON.stringify({ ...jsonMessage(method.input, taste), ...overlay?.json });
  return taste.isNasty(0.3) ? damageJson(text, dice) : text;
}

function getQuery(content: Uint8Array, isJson: boolean, dice: Dice): string {
  const inBase64 = !isJson || dice.chance(0.3);
  const text = Buffer.from(content).toString(inBase64 ? "base64url" : "utf8");
  // Truncate the text, because other cases test HTTP's limit for headers often enough.
  const message = text.slice(0, 8_000).replace(/\p{Surrogate}/gu, "?");
  return [
    "connect=v1",
    `encoding=${dice.chance(0.03) ? "text" : isJson ? "json" : "proto"}`,
    ...(inBase64 ? ["base64=1"] : []),
    `message=${encodeURIComponent(message)}`,
  ].join("&");
}

interface Framed {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

function frame(protocol: Protocol, content: Uint8Array, isStream: boolean, taste: Taste): Framed {
  const { dice } = taste;
  const hasFrames = isStream || protocol === "grpc" || protocol === "grpc-web";
  const isZipped = dice.chance(0.1);
  const zipped = isZipped ? gzipSync(content) : content;
  const sent = isZipped && taste.isNasty(0.5) ? damage(zipped, dice) : zipped;
  const name = !hasFrames
    ? "content-encoding"
    : protocol.startsWith("grpc")
      ? "grpc-encoding"
      : "connect-content-encoding";
  const encoding = taste.isNasty(0.1) ? "br" : "gzip";
  const headers = isZipped ? { [name]: encoding } : {};
  if (!hasFrames) return { headers, body: sent };
  const framed = envelope(sent, isZipped ? 1 : 0);
  return { headers, body: taste.isNasty(0.2) ? badFraming(framed, dice) : framed };
}

function badFraming(framed: Uint8Array, dice: Dice): Uint8Array {
  const bytes = Buffer.from(framed);
  switch (dice.int(0, 5)) {
    case 0:
      return new Uint8Array();
    case 1:
      return Buffer.concat([bytes, bytes]);
    case 2:
      bytes.writeUInt32BE(dice.pick([0, bytes.length, 1_048_577, 2 ** 32 - 1]), 1);
      return bytes;
    case 3:
      bytes.writeUInt8(dice.pick([1, 2, 3, 128, 255]));
      return bytes;
    case 4:
      return bytes.subarray(0, dice.int(0, bytes.length - 1));
    default:
      return Buffer.concat([bytes, dice.bytes(dice.int(1, 10))]);
  }
}

/** Choose additional headers. Most requests get none. */
function oddHeaders(taste: Taste): Readonly<Record<string, string>> {
  if (!taste.isNasty(0.2)) return {};
  const { dice } = taste;
  return dice.pick<Readonly<Record<string, string>>>([
    { "grpc-timeout": dice.pick(["1n", "0S", "99999999H", "-1S", "abc", "", "123456789S"]) },
    { "connect-timeout-ms": dice.pick(["0", "1", "-1", "9999999999", "99999999999", "x"]) },
    { "connect-protocol-version": dice.pick(["1", "2", ""]) },
    { "x-request-id": dice.pick(["", " ", "x".repeat(129), "é", "ok-1"]) },
    { accept: "text/html", "accept-encoding": dice.pick(["br", "gzip;q=0", "*", "\t,,"]) },
    { "grpc-accept-encoding": "br,identity,,gzip" },
    {
      "content-type": dice.pick(["application/grpc+json", "application/xml", "a/b; charset=é", ""]),
    },
    { "grpc-status-details-bin": "not base64!" },
    { "x-large": "z".repeat(7_000) },
  ]);
}
