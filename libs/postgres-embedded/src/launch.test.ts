import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { launcherArgument, launcherRuns } from "./launch.ts";

describe("launcherRuns()", () => {
  it("should recognize this process by its argument", async () => {
    const argument = await launcherArgument();
    expect(argument).toMatch(/^rollcall\.launcher=\d+\.\w+$/);
    expect(await launcherRuns(["postgres", "-c", argument])).toBe(true);
  });

  it("should detect an ended process, a reused id and a missing argument", async () => {
    const argument = await launcherArgument();
    const child = spawn("true", { stdio: "ignore" });
    await once(child, "exit");
    const others = [
      ["postgres"],
      [],
      [argument.replace(`${process.pid}.`, `${child.pid}.`)],
      [`rollcall.launcher=${process.pid}.1`],
      ["rollcall.launcher=x.y"],
      ["rollcall.launcher="],
    ];
    for (const args of others) expect([args, await launcherRuns(args)]).toEqual([args, false]);
  });
});
