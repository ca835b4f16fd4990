import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { CallStore } from "@rollcall/store";
import { nodeInfoToRow } from "@rollcall/wire";
import { adopted, bareReplica } from "../testing/bare-replica.ts";
import { InfoWriter } from "./info-writer.ts";

const MOST_QUEUED = 2_000;

describe("the queue of an InfoWriter", () => {
  it("should keep the newest report of a queued node when it is full, and drop those of others", async () => {
    const { replica } = bareReplica();
    const row = adopted(1);
    replica.adopt(
      Array.from({ length: MOST_QUEUED + 1 }, (_, index) => ({ ...row, nodeId: `n${index}` })),
      1n,
    );
    const written: unknown[] = [];
    // Only the queue is tested: each write is recorded and answered.
    const store = { change: (act: unknown) => Promise.resolve({ result: written.push(act) > 0, revision: 0n }) };
    const writer = new InfoWriter({
      store: store as unknown as CallStore,
      replica,
      validator: { check: () => {} },
      onQueued: () => {},
    });
    const report = (hostname: string) => create(NodeInfoSchema, { hostname });
    for (const node of replica.nodes.all()) writer.submit(node, report("first"));
    expect(writer.queued).toBe(MOST_QUEUED);
    const [first, last] = [replica.nodes.find("n0"), replica.nodes.find(`n${MOST_QUEUED}`)];
    if (first === undefined || last === undefined) throw new Error("the nodes are not held");
    writer.submit(first, report("second"));
    await writer.flush();
    expect(written).toHaveLength(MOST_QUEUED);
    expect([first.infoDigest, last.infoDigest]).toEqual([nodeInfoToRow(report("second")).digest, null]);
  });
});
