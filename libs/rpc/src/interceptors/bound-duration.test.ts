import { createContextValues, type StreamRequest, type StreamResponse } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { Health, type HealthCheckResponse } from "@rollcall/api/grpc/health/v1/health_pb";
import { endingKey } from "../calls/call-context.ts";
import { boundDuration } from "./bound-duration.ts";
import { CallGroup } from "./call-group.ts";

const { watch } = Health.method;

function bounded() {
  const ending = { streams: new CallGroup(), unary: new CallGroup() };
  const end = new AbortController();
  const caller = new AbortController();
  const shared = { stream: true, service: Health, method: watch, header: new Headers() } as const;
  const request: StreamRequest = {
    ...shared,
    requestMethod: "POST",
    url: "http://localhost",
    message: parked(),
    signal: caller.signal,
    contextValues: createContextValues().set(endingKey, end),
  };
  const response: StreamResponse = { ...shared, message: parked(), trailer: new Headers() };
  const next = () => Promise.resolve(response);
  return { ending, end, caller, call: () => boundDuration({}, ending)(next)(request) };
}

async function* parked(): AsyncGenerator<HealthCheckResponse> {
  yield await new Promise<never>(() => {});
}

describe("boundDuration()", () => {
  it("should end streams when the server shuts down", async () => {
    const { ending, end, call } = bounded();
    await call();
    ending.streams.abort("the server ends");
    expect(end.signal.reason).toBe("the server ends");
  });

  it("should keep nothing of a stream that has ended", async () => {
    const { ending, caller, call } = bounded();
    await call();
    expect(ending.streams.size).toBe(1);
    caller.abort();
    expect(ending.streams.size).toBe(0);
  });

  it("should keep nothing of a stream whose time was up before it began", async () => {
    const { ending, caller, call } = bounded();
    caller.abort();
    await call();
    expect(ending.streams.size).toBe(0);
  });
});
