import { describe, expect, it } from "@jest/globals";
import { systemClock } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { freePorts } from "../testing/free-ports.ts";
import { openRecord, unreachableText } from "./open-record.ts";

const URL_WITH_PASSWORD = "postgres://rollcall:se%40cret@db.example:5433/rollcall";

describe("openRecord()", () => {
  it("should wait for a Postgres that is not there, and say once where it should be", async () => {
    const [port = 0] = await freePorts(1);
    const { log, lines } = captureLog();
    const ending = new AbortController();
    let pauses = 0;
    const clock = {
      ...systemClock,
      sleep: async () => {
        pauses += 1;
        if (pauses === 3) ending.abort(new Error("enough"));
      },
    };
    const pools = { poolSize: 1, reservedPoolSize: 1 };
    const address = { url: `postgres://x@127.0.0.1:${port}/x` };
    const options = { address, pools, applicationName: "test", log, clock };
    await expect(openRecord(options, ending.signal)).rejects.toThrow("enough");
    const told = lines.filter(({ level }) => level === "warn").map(({ msg }) => msg);
    expect(told).toEqual([
      `Postgres at 127.0.0.1:${port} cannot be reached, trying again every second: ` +
        "connection refused; start it, or correct host and port of the URL",
    ]);
  });
});

describe("unreachableText()", () => {
  it.each([
    ["ENOTFOUND", /no such host; check the host of the URL, unless DNS learns its name later$/],
    ["ETIMEDOUT", /no answer; check host and port/],
    ["OTHER", /odd; check the URL, and the log of that Postgres$/],
  ])("should name the place and what to do: %s", (code, expected) => {
    const cause = Object.assign(new Error("driver"), { code });
    const text = unreachableText(new Error("odd", { cause }), { url: URL_WITH_PASSWORD });
    expect(text).toMatch(/^Postgres at db\.example:5433 cannot be reached/);
    expect(text).toMatch(expected);
    expect(text).not.toContain("cret");
  });
});
