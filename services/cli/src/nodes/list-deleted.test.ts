import { describe, expect, it } from "@jest/globals";
import { NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";

const server = useFakeControlPlane();

function bury(count: number): void {
  server.deleted = Array.from({ length: count }, (_, index) => ({
    nodeId: `n${index}`,
    type: NodeType.COMPUTE,
    deleteTime: { seconds: 60n },
    actor: "token:t1",
    reason: "OPERATOR_DELETED",
    message: index === 0 ? "sold" : "",
    membership: { state: 2 },
    health: { state: 3 },
  }));
}

describe("node list --deleted", () => {
  it("should tell when, by whom and why, and the last state", async () => {
    bury(1);
    expect((await runAgainst(server, "node list --deleted")).out).toBe(
      lines(
        "ID  TYPE     DELETED                   ACTOR     REASON            MESSAGE  APPROVAL  STATUS   CONNECTION",
        "n0  Compute  1970-01-01T00:01:00.000Z  token:t1  OPERATOR_DELETED  sold     APPROVED  UNKNOWN  -",
      ),
    );
  });

  it("should read every page, or as many as are asked for", async () => {
    bury(450);
    const all = await runAgainst(server, "node list --deleted --output csv --hide-header");
    expect(all.out.trimEnd().split("\n")).toHaveLength(450);
    const some = await runAgainst(server, "node list --deleted --limit 210 --output json");
    expect(JSON.parse(some.out).deletedNodes).toHaveLength(210);
    expect(JSON.parse(some.out).nextPageToken).toBe("210");
  });

  it("should refuse filters", async () => {
    const answer = await runAgainst(server, "node list --deleted --labels a=b");
    expect(answer).toMatchObject({ code: 2, out: "" });
  });
});
