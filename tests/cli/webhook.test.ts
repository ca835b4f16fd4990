import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "../../libs/testkit/src/certificates.ts";
import { TestReceiver } from "../../services/admin/src/testing/test-receiver.ts";
import { commandBlocks } from "../support/readme-blocks.ts";
import { workspaceRoot } from "../support/workspace.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const authority = new TestAuthority();
const receiver = new TestReceiver(authority);
const rig = useControlPlane(
  () => ({}),
  `Webhooks:\n  AllowedNetworks: [127.0.0.1]\n  AuthorityFile: ${authority.caFile}\n`,
);
beforeAll(async () => {
  await receiver.listen();
});
afterAll(() => receiver.close());

const json = async (line: string) => JSON.parse((await rig.run(`${line} -o json`)).out);

describe("webhook", () => {
  it("should work as docs/webhooks.md describes", async () => {
    const page = readFileSync(join(workspaceRoot, "docs/webhooks.md"), "utf8");
    const commands = commandBlocks(page).flatMap(({ commands: text }) =>
      text.replaceAll("\\\n", "").trim().split("\n"),
    );
    expect(commands.length).toBeGreaterThan(6);
    for (const command of commands) {
      const [line = ""] = command.replace(/^rollcall /, "").split(">");
      const { code, err, out } = await rig.run(line.trim().split(/\s+/));
      expect([command, code, err]).toEqual([command, 0, expect.anything()]);
      if (/^webhook set ops --(url|rotate)/.test(line)) expect(out).toMatch(/^whsec_\S{44}\n$/);
    }
  });

  it("should create, change only the given fields, list and show", async () => {
    const made = await rig.run(`webhook set one --url ${receiver.url()} --type node.approved --description x`);
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^whsec_/) });
    expect(made.err).toContain("not shown again");
    expect(await rig.run("webhook set one --selector zone=a")).toMatchObject({
      code: 0,
      out: "",
      err: "Ok: one updated\n",
    });
    const { webhook } = await json("webhook show one");
    expect(webhook.spec).toMatchObject({ types: ["node.approved"], labelSelector: "zone=a", description: "x" });
    const { out: list } = await rig.run("webhook list");
    expect(list).toContain("active");
    expect(list).not.toContain("of-the-path");
    const { out: shown } = await rig.run("webhook show one");
    expect(shown).toContain("https://127.0.0.1");
    expect((await rig.run("webhook list -o csv")).out.split("\n")[0]).toContain("name,");
  });

  it("should test a receiver, and fail when the receiver refuses the event", async () => {
    await rig.run(`webhook set tested --url ${receiver.url()} --pause`);
    expect(await rig.run("webhook test tested")).toMatchObject({ code: 0, out: "Ok: the receiver answered 204\n" });
    receiver.answer = () => 500;
    const failed = await rig.run("webhook test tested");
    expect(failed.code).toBe(1);
    expect(failed.err).toContain("the receiver answered 500");
  });

  it("should say what is wrong, and what to type", async () => {
    const missing = await rig.run("webhook show absent");
    expect(missing).toMatchObject({ code: 1 });
    expect(missing.err).toContain("rollcall webhook list");
    expect((await rig.run("webhook set absent --pause")).err).toContain("--url");
    expect((await rig.run("webhook set one --pause --resume")).code).toBe(2);
    expect((await rig.run("webhook set bad --url https://10.0.0.1/")).err).toContain("Webhooks.AllowedNetworks");
  });

  it("should be checked by doctor", async () => {
    const { out } = await rig.run("doctor -o json");
    const findings = JSON.parse(out).findings ?? JSON.parse(out);
    const checks = findings.filter(({ check }: { readonly check: string }) => check === "webhooks");
    expect(checks).toMatchObject([{ status: "ok" }]);
    await rig.run("webhook delete one");
  });
});
