import { describe, expect, it } from "@jest/globals";
import * as farewells from "./farewell.ts";

const LEAST = () => 0;
const MOST = () => 1;
const FIRST = { instanceId: "i", isDuplicated: false };

describe("farewells", () => {
  const membership = {
    state: "REJECTED",
    sinceMs: 0,
    reason: "R",
    message: "bad disk",
    actor: "token:t",
  } as const;

  it.each([
    ["superseded", farewells.superseded("n1", FIRST, LEAST), farewells.superseded("n1", FIRST, MOST), 1_000, 2_000],
    ...[
      { ...FIRST, isDuplicated: true },
      { ...FIRST, instanceId: "" },
    ].map((it): [string, farewells.Farewell, farewells.Farewell, number, number] => [
      "superseded where a return proves nothing new",
      farewells.superseded("n1", it, LEAST),
      farewells.superseded("n1", it, MOST),
      ...([30_000, 60_000] as const),
    ]),
    ["moved on", farewells.movedOn("n1", LEAST), farewells.movedOn("n1", MOST), 0, 2_000],
    [
      "rejected",
      farewells.rejected("n1", membership, { wallMs: 600_000, random: LEAST }),
      farewells.rejected("n1", membership, { wallMs: 600_000, random: MOST }),
      10_000,
      16_000,
    ],
    [
      "rejected an hour ago",
      farewells.rejected("n1", membership, { wallMs: 3_600_000, random: LEAST }),
      farewells.rejected("n1", membership, { wallMs: 3_600_000, random: MOST }),
      60_000,
      96_000,
    ],
    ["overloaded", farewells.overloaded(4_000, LEAST), farewells.overloaded(4_000, MOST), 4_000, 5_000],
    ["store away", farewells.storeAway(LEAST), farewells.storeAway(MOST), 1_000, 3_000],
    ["shutting down, few", farewells.shuttingDown(1_000, LEAST), farewells.shuttingDown(1_000, MOST), 0, 1_000],
    ["shutting down, many", farewells.shuttingDown(20_000, LEAST), farewells.shuttingDown(20_000, MOST), 0, 20_000],
  ])("should spread returning agents: %s", (_, least, most, fromMs, toMs) => {
    expect(least.retryAfterMs).toBe(fromMs);
    expect(most.retryAfterMs).toBe(toMs);
  });

  it.each([
    ["deleted by an operator", farewells.deleted("n1", "operator"), "STOP", "NODE_DELETED"],
    ["deregistered", farewells.deleted("n1", "node"), "STOP", "NODE_DELETED"],
    ["not registered", farewells.notRegistered("n1", LEAST), "REGISTER", "NODE_NOT_REGISTERED"],
    ["another key", farewells.proofInvalid("n1", LEAST), "REGISTER", "PROOF_INVALID"],
    ["silent", farewells.stale("n1", 61_234.5), "RECONNECT", "STREAM_STALE"],
    ["slow", farewells.tooSlow("n1"), "RECONNECT", "PEER_TOO_SLOW"],
  ])("should name the next action: %s", (_, farewell, action, reason) => {
    expect(farewell).toMatchObject({ action, reason, metadata: { node: "n1" } });
  });

  it("should send a rejected node the reason, or say that there is none", () => {
    const text = (message: string) =>
      farewells.rejected("n1", { ...membership, message }, { wallMs: 0, random: LEAST }).message;
    expect(text("bad disk")).toBe("node has been rejected: bad disk");
    expect(text("")).toBe("node has been rejected: no reason given");
  });
});
