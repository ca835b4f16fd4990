import { execFileSync } from "node:child_process";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { captureLog } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { OutputPump } from "./output-pump.ts";

describe("OutputPump", () => {
  it("should lose only the output that cannot be written, say so once, and end with its writers", async () => {
    const directory = await mkdtemp(join(tmpdir(), "rollcall-pump-"));
    const pipe = join(directory, "pipe");
    execFileSync("mkfifo", [pipe]);
    const written: string[] = [];
    let attempts = 0;
    const append = async (chunk: Uint8Array) => {
      attempts += 1;
      if (attempts % 2 === 1) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      written.push(Buffer.from(chunk).toString());
    };
    const { log, lines } = captureLog();
    const pump = new OutputPump(pipe, { append }, { wallMs: () => 0, log });
    const writer = await open(pipe, "w");
    try {
      for (const [index, text] of ["a", "b", "c", "d"].entries()) {
        await writer.write(text);
        await until(`attempt ${index + 1}`, () => attempts === index + 1, 10_000);
      }
      expect(pump.isDone).toBe(false);
    } finally {
      await writer.close();
    }
    await until("the end", () => pump.isDone);
    await pump.close();
    await rm(directory, { recursive: true });
    expect(written).toEqual(["b", "d"]);
    expect(lines).toMatchObject([{ level: "error", msg: "cannot write output; it is lost" }]);
  });
});
