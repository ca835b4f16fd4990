import http2 from "node:http2";
import { expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { RpcFixture } from "../../test/rpc-fixture.ts";

const PATH = "/rollcall.registry.v1.RegistryService/GetNode";
const CALLS = 100;
/**
 * The loop's budget runs eight pieces in one iteration. On a busy machine, calls whose pieces ran in several iterations
 * can end in the same one.
 */
const MAX_PER_TICK = CALLS / 2;

/**
 * Begin calls whose requests never arrive completely. Returns a function that breaks the connection of
 * these calls.
 */
async function begin({ url }: RpcFixture, contentType: string): Promise<() => void> {
  const session = http2.connect(url);
  session.on("error", () => {});
  for (let call = 0; call < CALLS; call += 1) {
    const type = { "content-type": contentType, te: "trailers" };
    const headers = { ":method": "POST", ":path": PATH, ...type, authorization: "Bearer viewer-token" };
    session
      .request(headers, { endStream: false })
      .on("error", () => {})
      .write(Buffer.alloc(3));
  }
  return () => session.destroy();
}

it.each(["application/grpc", "application/grpc-web+proto", "application/json"])(
  "should spread the end of %s calls that are cut together over several iterations of the event loop",
  async (contentType) => {
    const fixture = await RpcFixture.start();
    try {
      const cut = await begin(fixture, contentType);
      await until("all calls to be in progress", () => sum(fixture.held) === CALLS);
      cut();
      let most = 0;
      let before = 0;
      const look = () => {
        most = Math.max(most, fixture.lines.length - before);
        before = fixture.lines.length;
        if (before < CALLS) setImmediate(look);
      };
      setImmediate(look);
      await until("all calls to have ended", () => fixture.lines.length >= CALLS);
      expect(most).toBeLessThanOrEqual(MAX_PER_TICK);
    } finally {
      await fixture.stop();
    }
  },
);

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((all, count) => all + count, 0);
}
