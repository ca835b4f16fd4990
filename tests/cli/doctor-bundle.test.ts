import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

describe("doctor --bundle", () => {
  it("should write an archive without secrets, and print what is in it", async () => {
    await rig.register("n1");
    await rig.run("webhook set ops --url https://ops.example/hook?key=s3cret");
    const { code, out } = await rig.run("doctor --bundle help.tar.gz");
    expect(code).toBe(0);
    const path = join(rig.folder, "help.tar.gz");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const names = execFileSync("tar", ["-tzf", path], { encoding: "utf8" }).trim().split("\n");
    expect(names).toEqual(
      expect.arrayContaining(["version.json", "doctor.json", "events.json", "metrics.txt", "logs.txt"]),
    );
    for (const name of names) expect(out).toContain(`${name} `);
    const text = execFileSync("tar", ["-xzOf", path], { encoding: "utf8" });
    expect(text).toContain("n1");
    for (const secret of [rig.token, "s3cret"]) expect(text).not.toContain(secret);
    const again = await rig.run("doctor --bundle help.tar.gz");
    expect(again).toMatchObject({ code: 3, err: expect.stringContaining("file already exists") });
  });

  it("should describe what it can without a control plane", async () => {
    const { code, out } = await rig.run("doctor --bundle alone.tar.gz --server 127.0.0.1:1");
    expect(code).toBe(0);
    expect(out).toContain("status.json.stderr.txt ");
  });
});
