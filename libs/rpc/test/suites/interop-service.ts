import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import type { Fields, Init, SuiteContext, SuiteHandlers } from "./suite-calls.ts";
import { type SuiteServer, startSuiteServer } from "./suite-server.ts";

interface Call {
  readonly responseSize: number;
  readonly responseParameters: readonly { readonly size: number; readonly intervalUs: number }[];
  readonly responseStatus?: { readonly code: number; readonly message: string };
  readonly payload?: { readonly body: Uint8Array };
}

export const INTEROP_SERVICE = "grpc.testing.TestService";

/** Serve the service of gRPC's interoperability tests, whose schema is in a file. */
export async function interopServer(
  descriptors: string,
  port: "api" | "agents",
  tls: { readonly certFile: string; readonly keyFile: string; readonly clientCaFile: string | undefined } | null,
): Promise<SuiteServer> {
  const types = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
  const service = types.getService(INTEROP_SERVICE);
  if (service === undefined) throw new Error(`${descriptors} has no ${INTEROP_SERVICE}`);
  return await startSuiteServer({ port, service, handlers: INTEROP_HANDLERS, tls });
}

/** The handlers of gRPC's interoperability tests, as doc/interop-test-descriptions.md of gRPC describes them. */
const INTEROP_HANDLERS: SuiteHandlers = {
  async *emptyCall(_, context) {
    echo(context);
    yield {};
  },
  async *unaryCall(requests, context) {
    echo(context);
    for await (const { responseStatus, responseSize } of callsOf(requests)) {
      refuseWith(responseStatus);
      yield payloadOf(responseSize);
    }
  },
  async *streamingOutputCall(requests, context) {
    echo(context);
    for await (const request of callsOf(requests)) yield* responsesTo(request);
  },
  async *streamingInputCall(requests, context) {
    echo(context);
    let aggregatedPayloadSize = 0;
    for await (const { payload } of callsOf(requests)) aggregatedPayloadSize += payload?.body.length ?? 0;
    yield { aggregatedPayloadSize };
  },
  async *fullDuplexCall(requests, context) {
    echo(context);
    for await (const request of callsOf(requests)) yield* responsesTo(request);
  },
};

function callsOf(requests: AsyncIterable<Fields>): AsyncIterable<Call> {
  return requests as AsyncIterable<unknown> as AsyncIterable<Call>;
}

async function* responsesTo({ responseStatus, responseParameters }: Call): AsyncIterable<Init> {
  refuseWith(responseStatus);
  for (const { size, intervalUs } of responseParameters) {
    if (intervalUs > 0) await new Promise((resolve) => setTimeout(resolve, intervalUs / 1_000));
    yield payloadOf(size);
  }
}

function echo({ requestHeader, responseHeader, responseTrailer }: SuiteContext): void {
  const initial = requestHeader.get("x-grpc-test-echo-initial");
  const trailing = requestHeader.get("x-grpc-test-echo-trailing-bin");
  if (initial !== null) responseHeader.set("x-grpc-test-echo-initial", initial);
  if (trailing !== null) responseTrailer.set("x-grpc-test-echo-trailing-bin", trailing);
}

/** Fail as the caller wants. The error has a detail, because the server masks errors of some codes without details. */
function refuseWith(status: Call["responseStatus"]): void {
  if (status === undefined || status.code === 0) return;
  const detail = { desc: ErrorInfoSchema, value: { reason: "AS_REQUESTED", domain: INTEROP_SERVICE } };
  throw new ConnectError(status.message, status.code, undefined, [detail]);
}

function payloadOf(size: number): Init {
  return { payload: { body: new Uint8Array(size) } };
}
