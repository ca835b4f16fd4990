import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { ConnectionState, HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode, NOW_MS } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

function explain(): void {
  server.add(computeNode("n1"));
  server.beat("n1", 2400);
  server.explanation = {
    entries: [
      {
        event: {
          type: "node.scheduling.changed",
          actor: "token:ops",
          time: timestampFromMs(NOW_MS - 60_000),
        },
        text: "ELIGIBLE -> INELIGIBLE: OPERATOR_CORDONED, disk swap",
      },
    ],
    summary: "node n1 may take no work because an operator cordoned it (disk swap).",
    obstacles: [
      {
        state: "scheduling",
        reason: "OPERATOR_CORDONED",
        text: "an operator cordoned it (disk swap)",
        remedy: "rollcall node uncordon n1",
      },
    ],
  };
}

describe("node why", () => {
  it("should end with whether the node may take work, and what would change that", async () => {
    explain();
    const { code, out } = await runAgainst(server, "node why n1 --limit 7");
    expect(code).toBe(0);
    const at = `${new Date(NOW_MS - 60_000).toISOString().slice(0, 19).replace("T", " ")}Z`;
    expect(out).toBe(
      lines(
        `${at}  scheduling.changed  ELIGIBLE -> INELIGIBLE: OPERATOR_CORDONED, disk swap`,
        "                      by token:ops",
        "",
        "last heard 2s ago; UNHEALTHY in 57s unless it is heard",
        "node n1 may take no work because an operator cordoned it (disk swap).",
        "  to change that: rollcall node uncordon n1",
      ),
    );
    expect(server.calls).toContain("ExplainNode n1 7");
  });

  it("should not promise UNHEALTHY to a node that said goodbye", async () => {
    explain();
    const node = server.nodes.get("n1");
    if (node?.connection === undefined || node.health === undefined) throw new Error("no node");
    Object.assign(node.connection, {
      ...{ state: ConnectionState.DISCONNECTED, reason: "AGENT_SHUTDOWN" },
      message: "it said goodbye",
    });
    Object.assign(node.health, { state: HealthState.UNHEALTHY, reason: "AGENT_SHUTDOWN" });
    server.beat("n1", 36_000);
    const { out } = await runAgainst(server, "node why n1");
    expect(out).toContain(
      "\nlast heard 36s ago; not connected: it said goodbye; UNKNOWN in 4m unless it comes back\n",
    );
  });

  it("should print the answer for programs", async () => {
    explain();
    const { out } = await runAgainst(server, "node why n1 --output json");
    expect(JSON.parse(out)).toMatchObject({
      node: { id: "n1" },
      entries: [{ event: { actor: "token:ops" } }],
      obstacles: [{ remedy: "rollcall node uncordon n1" }],
    });
  });

  it("should say what there is when health is away, and refuse a limit of nothing", async () => {
    explain();
    server.healthAway = true;
    const { code, out, err } = await runAgainst(server, "node why n1");
    expect(code).toBe(0);
    expect(out).not.toContain("last heard");
    expect(err).toMatch(/^warning: /);
    expect((await runAgainst(server, "node why n1 --limit 0")).code).toBe(2);
  });
});
