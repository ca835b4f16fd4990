import type http2 from "node:http2";
import { refuse } from "@rollcall/errors";
import { toGrpcStatus } from "../grpc/grpc-status.ts";

type StreamListener = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, ...rest: unknown[]) => void;

/**
 * Have a grpc-js server refuse calls whose messages are compressed, with COMPRESSION_NOT_SUPPORTED and the encodings
 * that it takes, as gRPC's specification has it. grpc-js itself unpacks whatever comes, as many at a time as come, and
 * messages of a few dozen bytes have nothing to gain.
 */
export function refuseCompressed(server: http2.Http2Server): void {
  const listeners = server.listeners("stream") as StreamListener[];
  server.removeAllListeners("stream");
  server.on("stream", (stream, headers, ...rest) => {
    const { "grpc-encoding": encoding = "identity" } = headers;
    if (encoding === "identity") for (const serve of listeners) serve.call(server, stream, headers, ...rest);
    else answer(stream);
  });
}

function answer(stream: http2.ServerHttp2Stream): void {
  stream.on("error", () => {});
  const message = "messages to this port are not compressed: send them with grpc-encoding identity";
  const status = toGrpcStatus(refuse("COMPRESSION_NOT_SUPPORTED", message));
  stream.respond(
    {
      ":status": 200,
      "content-type": "application/grpc+proto",
      "grpc-accept-encoding": "identity",
      "grpc-status": String(status.code),
      "grpc-message": encodeURI(status.details),
      ...status.metadata?.toHttp2Headers(),
    },
    { endStream: true },
  );
  stream.close();
}
