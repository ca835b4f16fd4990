import { describe, expect, it } from "@jest/globals";
import { type BannerFacts, exposure, formatBanner } from "./banner.ts";

const FACTS: BannerFacts = {
  version: "0.1.0",
  host: "127.0.0.1",
  server: "127.0.0.1:7700",
  agents: "127.0.0.1:7701",
  probes: "127.0.0.1:7790",
  dataDirectory: "/data/.rollcall",
  tokenFile: "/data/.rollcall/admin-token",
  manualApproval: false,
  program: "bin/rollcall",
};

describe("formatBanner()", () => {
  it("should say where everything is and what to try next", () => {
    expect(formatBanner(FACTS)).toBe(`
Rollcall 0.1.0 is up.

  API      127.0.0.1:7700
  agents   127.0.0.1:7701
  probes   http://127.0.0.1:7790/readyz and /metrics
  data     /data/.rollcall
  token    /data/.rollcall/admin-token

Next, in another terminal:

  bin/rollcall node list
  bin/rollcall node watch
  bin/rollcall agent --server 127.0.0.1:7700 --name second --state-dir /data/.rollcall/second
`);
  });
});

describe("exposure()", () => {
  it("should speak only where others can join without being asked", () => {
    expect(exposure(FACTS)).toEqual([]);
    expect(exposure({ host: "0.0.0.0", manualApproval: true })).toEqual([]);
    expect(exposure({ host: "0.0.0.0", manualApproval: false })).toHaveLength(1);
  });
});
