import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { processStart } from "./process-start.ts";

describe("processStart()", () => {
  it("should answer the same for one process each time", async () => {
    const first = await processStart(process.pid);
    expect(first).toMatch(/\d/);
    expect(await processStart(process.pid)).toBe(first);
  });

  it("should answer null for a process that has ended, and for none", async () => {
    const child = spawn("true", { stdio: "ignore" });
    await once(child, "exit");
    expect(await processStart(child.pid ?? 0)).toBeNull();
    expect(await processStart(4_194_304)).toBeNull();
  });
});
