import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { rememberRevision } from "./remember-revision.ts";

type Next = Parameters<Interceptor>[0];

/**
 * Make a call whose response has the revision `answer`. If `answer` is an error, the call fails with
 * it. Returns the revision that the call sent.
 */
async function sent(interceptor: Interceptor, answer: string | ConnectError | null, stream = false) {
  const request = { stream, header: new Headers() };
  const next = async () => {
    if (answer instanceof ConnectError) throw answer;
    return { stream, header: new Headers(answer === null ? {} : { "rollcall-revision": answer }) };
  };
  const call = interceptor(next as unknown as Next);
  // Ignore errors, because some of these calls are meant to fail.
  await call(request as unknown as Parameters<Next>[0]).catch(() => {});
  return request.header.get("rollcall-min-revision");
}

describe("rememberRevision()", () => {
  it("should send the highest revision of previous responses, except with streams", async () => {
    const interceptor = rememberRevision();
    expect(await sent(interceptor, "9")).toBeNull();
    expect(await sent(interceptor, "10")).toBe("9");
    expect(await sent(interceptor, "8")).toBe("10");
    expect(await sent(interceptor, null, true)).toBeNull();
    expect(await sent(interceptor, null)).toBe("10");
  });

  it("should forget it only if the log does not go that far", async () => {
    const interceptor = rememberRevision();
    await sent(interceptor, "9");
    await sent(interceptor, new ConnectError("behind", Code.Unavailable));
    expect(await sent(interceptor, new ConnectError("ahead", Code.OutOfRange))).toBe("9");
    expect(await sent(interceptor, null)).toBeNull();
  });
});
