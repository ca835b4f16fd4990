import { describe, expect, it } from "@jest/globals";
import { freePorts } from "./free-ports.ts";

describe("freePorts()", () => {
  it("should return no port twice, and only ports of this worker", async () => {
    const found = [...(await freePorts(200)), ...(await freePorts(200))];
    expect(new Set(found).size).toBe(400);
    const ranges = new Set(found.map((port) => Math.floor((port - 20_000) / 2_750)));
    expect([...ranges]).toEqual([Number(process.env.JEST_WORKER_ID) % 4]);
  });
});
