import { describe, expect, it } from "@jest/globals";
import { mapError, refuse } from "@rollcall/errors";
import { CallRequests } from "./call-requests.ts";

function setUp() {
  const done: string[] = [];
  const call = { pause: () => done.push("pause"), resume: () => done.push("resume") };
  return { done, requests: new CallRequests<string>(call) };
}

describe("CallRequests", () => {
  it("should pause the call while a request waits, and resume it when the request is taken", async () => {
    const { done, requests } = setUp();
    requests.onFrame("a");
    expect(done).toEqual(["pause"]);
    expect(await requests.next()).toEqual({ done: false, value: "a" });
    expect(done).toEqual(["pause", "resume"]);
    const next = requests.next();
    requests.onFrame("b");
    expect(await next).toEqual({ done: false, value: "b" });
    expect(done).toEqual(["pause", "resume", "pause", "resume"]);
  });

  it("should end with the peer's half, after all requests, whatever ends the call afterwards", async () => {
    const { requests } = setUp();
    requests.onFrame("a");
    requests.onHalfClose();
    requests.onGone(mapError(refuse("CANCELLED", "gone")));
    const taken: string[] = [];
    for await (const request of requests) taken.push(request);
    expect(taken).toEqual(["a"]);
    expect(await requests.next()).toEqual({ done: true, value: undefined });
  });

  it("should fail with the error of a call that ends before the peer's half", async () => {
    const { requests } = setUp();
    const error = mapError(refuse("MESSAGE_TOO_LARGE", "too large"));
    const next = requests.next();
    requests.onGone(error);
    await expect(next).rejects.toBe(error);
    await expect(requests.next()).rejects.toBe(error);
  });
});
