import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

describe("node status", () => {
  it("should show a node on one screen", async () => {
    server.add(computeNode("n1"));
    server.beat("n1", 2400);
    const { code, out } = await runAgainst(server, "node status n1");
    expect(code).toBe(0);
    expect(out).toBe(
      lines(
        "n1  Compute  may take work",
        "",
        "Approval    APPROVED     for 3h   by system  AUTO_APPROVED",
        "Connection  CONNECTED    for 3h   by replica:health-1  SESSION_OPENED",
        "Health      HEALTHY      for 3h   by replica:health-1  HEARTBEAT",
        "Scheduling  ELIGIBLE     for 3h",
        "Contact     last seen 2s ago, heartbeat every 15s, unhealthy after 1m, unknown after 5m",
        "",
        "Host        n1.example",
        "OS          Debian GNU/Linux 12, 6.1.0-18-amd64, x64",
        "CPU         16 cores, 1 socket, AMD EPYC 9654",
        "Memory      64.0 GiB, 1 NUMA node",
        "Disk        500 GiB",
        "GPUs        2 x NVIDIA H100",
        "VMs         not capable: no /dev/kvm",
        "VFIO GPUs   0",
        "Agent       0.1.0",
        "Key         SHA256:abc",
        "Registered  2026-08-06 09:00:00Z",
        "Labels      gpu=h100  (agent)",
        "            zone=a  (agent)",
        "",
        "no usage reported yet",
      ),
    );
  });

  it("should show what its configuration asks for and is not granted", async () => {
    server.add(computeNode("n1"));
    server.beat("n1", 2400, {
      wishedHeartbeatInterval: durationFromMs(5_000),
      infoInterval: durationFromMs(60_000),
      wishedInfoInterval: durationFromMs(30_000),
    });
    const { out } = await runAgainst(server, "node status n1");
    expect(out).toContain("\nAsks for    a heartbeat every 5s (is told 15s), information every 30s (is told 1m)\n");
    server.beat("n1", 2400, { wishedHeartbeatInterval: durationFromMs(15_000) });
    expect((await runAgainst(server, "node status n1")).out).not.toContain("Asks for");
  });

  it("should show what there is when health is away", async () => {
    server.add(computeNode("n1"));
    server.healthAway = true;
    const { code, out, err } = await runAgainst(server, "node status n1");
    expect(code).toBe(0);
    expect(out).toContain("Contact     last seen -\n");
    expect(err).toMatch(/^warning: last seen and usage are missing: /);
  });
});
