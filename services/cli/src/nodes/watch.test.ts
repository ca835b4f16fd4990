import { describe, expect, it } from "@jest/globals";
import { runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();
const terminal = { columns: 150, rows: 7 };

describe("node watch", () => {
  it("should print one snapshot after the other where there is no terminal", async () => {
    server.add(computeNode("n1"));
    const { code, out, err } = await runAgainst(server, "node watch --interval 1ms --count 2");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.match(/^2026-08-06 12:00:00Z {2}every 0.001s$/gm)).toHaveLength(2);
    expect(out.match(/^n1 +Compute +APPROVED +HEALTHY/gm)).toHaveLength(2);
    expect(out).not.toContain("\u001b");
  });

  it("should redraw in place on a terminal, and give it back on Ctrl-C", async () => {
    server.add(computeNode("n1"));
    const ctrlC = new AbortController();
    const { code, out } = await runAgainst(server, "node watch --interval 1ms", {
      terminal,
      interrupted: ctrlC.signal,
      onOutput: (all) => {
        if (all.split("\u001b[H").length > 3) ctrlC.abort();
      },
    });
    expect(code).toBe(130);
    expect(out.startsWith("\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[H")).toBe(true);
    expect(out.endsWith("\u001b[?7h\u001b[?25h\u001b[?1049l")).toBe(true);
  });

  it("should show no more nodes than the terminal has lines for", async () => {
    server.add(...Array.from({ length: 9 }, (_, at) => computeNode(`n${at}`)));
    const { out } = await runAgainst(server, "node watch --count 1 --no-color", { terminal });
    expect(out.match(/n\d +Compute/g)).toHaveLength(3);
    expect(out).toContain("and more");
  });

  it("should go on when the control plane is away for a while", async () => {
    server.add(computeNode("n1"));
    let frames = 0;
    const { code, out } = await runAgainst(server, "node watch n1 --interval 1ms --count 3", {
      onOutput: () => {
        frames += 1;
        if (frames === 1) server.nodes.clear();
        if (frames === 2) server.add(computeNode("n1"));
      },
    });
    expect(code).toBe(0);
    expect(out.match(/failed to watch node n1: node n1 not found/g)).toHaveLength(1);
    expect(out.match(/may take work/g)).toHaveLength(2);
  });

  it("should fail as any other verb when it cannot even begin", async () => {
    expect(await runAgainst(server, "node watch n1", { terminal })).toEqual({
      code: 1,
      out: "",
      err: "failed to watch node n1: node n1 not found\n",
    });
  });

  it("should show that health is away inside the frame", async () => {
    server.add(computeNode("n1"));
    server.healthAway = true;
    const { out, err } = await runAgainst(server, "node watch --count 1");
    expect(err).toBe("");
    expect(out).toContain("warning: last seen and usage are missing: the service is ending\n");
  });
});
