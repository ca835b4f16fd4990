import { describe, expect, it } from "@jest/globals";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { refuse } from "@rollcall/errors";
import { type CountedResource, faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { ManualClock } from "@rollcall/testkit/time";
import type { LiveNode } from "../replica/live-node.ts";
import { LiveWork } from "../replica/live-work.ts";
import type { WorkFrame } from "../replica/work-frames.ts";
import { BareStream } from "../testing/bare-replica.ts";
import { FakeLogCall } from "../testing/fake-log-call.ts";
import { liveNode } from "../testing/live-node.ts";
import { LogProxy } from "./log-proxy.ts";

const QUERY = {
  ...{ executionId: "e1", stream: OutputStream.UNSPECIFIED, offset: 0n, stderrOffset: 0n, tailBytes: 0n },
  ...{ tailLines: 0, follow: true, times: false },
};
const OPEN_WITHIN_MS = 5_000;
const PIECE = { stream: 1, data: Buffer.from("x") };

/** A proxy with nodes. Their agents open their calls, and send what a test specifies. */
class Readings {
  readonly clock = new ManualClock();
  readonly proxy = new LogProxy({ clock: this.clock, openWithinMs: OPEN_WITHIN_MS });
  /** Whether the agents open their calls. */
  answers = true;
  /** The agents' most recent call. */
  #call: FakeLogCall | null = null;

  node(id: string): LiveNode {
    const sendWork = (frame: WorkFrame): boolean => {
      if (frame.kind !== "log-request" || !this.answers) return true;
      this.#call = new FakeLogCall(this.proxy);
      this.#call.push({ ...PIECE, token: frame.token });
      return true;
    };
    return liveNode(id, { work: new LiveWork(), stream: Object.assign(new BareStream(), { sendWork }) });
  }

  /** Read from a node until the first piece. */
  async begin(node: LiveNode): Promise<Use> {
    const reader = new AbortController();
    const pieces = this.proxy.read(node, QUERY, reader.signal);
    await pieces.next();
    const call = this.#call;
    const rest = async () => {
      while ((await pieces.next()).done !== true);
    };
    return {
      endings: {
        "the end of the output": async () => {
          call?.push(null);
          await rest();
        },
        "a failure that the agent reports": async () => {
          call?.push({ ...PIECE, failure: "LOG_NOT_FOUND" });
          await rest().catch(() => {});
        },
        "a broken call of the agent": async () => {
          call?.fail(refuse("CANCELLED", "broken"));
          await rest().catch(() => {});
        },
        "a reader that stops": () => pieces.return(undefined),
        "a reader that disconnects": async () => {
          const waiting = pieces.next();
          reader.abort(new Error("gone"));
          await waiting.catch(() => {});
        },
      },
    };
  }
}

describe("readings of output", () => {
  it("should be limited for a node, whichever way they end", async () => {
    const readings = new Readings();
    const node = readings.node("n1");
    const resource: CountedResource = { limit: 16, reason: "TOO_MANY_STREAMS", begin: () => readings.begin(node) };
    expect(await faultsAtLimit(resource)).toEqual([]);
  });

  it("should be limited for a replica, whichever way they end", async () => {
    const readings = new Readings();
    const nodes = Array.from({ length: 20 }, (_, index) => readings.node(`n${index}`));
    let begun = 0;
    const begin = () => {
      begun += 1;
      return readings.begin(nodes[begun % nodes.length] as LiveNode);
    };
    expect(await faultsAtLimit({ limit: 200, reason: "TOO_MANY_STREAMS", begin })).toEqual([]);
  });

  it("should not count when the agent never opens its call", async () => {
    const readings = new Readings();
    readings.answers = false;
    const node = readings.node("n1");
    for (let round = 0; round < 3; round += 1) {
      const reads = Array.from({ length: 16 }, () => readings.proxy.read(node, QUERY, new AbortController().signal));
      const outcomes = Promise.allSettled(reads.map((pieces) => pieces.next()));
      await readings.clock.pass(OPEN_WITHIN_MS);
      for (const { status } of await outcomes) expect(status).toBe("rejected");
    }
    readings.answers = true;
    const begin = () => readings.begin(node);
    expect(await faultsAtLimit({ limit: 16, reason: "TOO_MANY_STREAMS", begin })).toEqual([]);
  });

  it.each([
    ["of one node", 8, () => "n1"],
    ["of all nodes", 50, (index: number) => `n${index}`],
  ])("should be limited for a caller, %s", async (_, limit, nodeOf) => {
    const { proxy } = new Readings();
    let begun = 0;
    const begin = (): Use => {
      begun += 1;
      return { endings: { leaving: proxy.admit("token:a", nodeOf(begun)) } };
    };
    expect(await faultsAtLimit({ limit, reason: "TOO_MANY_STREAMS", begin })).toEqual([]);
    // Each caller has a separate limit.
    const held = Array.from({ length: limit }, begin);
    expect(() => proxy.admit("token:b", nodeOf(0))).not.toThrow();
    for (const { endings } of held) await endings.leaving?.();
  });
});
