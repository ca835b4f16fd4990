import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { until } from "../../libs/testkit/src/until.ts";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../support/checkout.ts";
import { createJoiningMachine, type JoiningMachine, makeAgentPackages } from "../support/joining-machine.ts";
import { type CommandPlace, testPage } from "../support/page-commands.ts";
import { workspaceRoot } from "../support/workspace.ts";

const START_LIMIT_MS = 120_000;

describe("the pages about machines that join by one line", () => {
  let fixture: UpFixture;
  let place: CommandPlace;
  let machine: JoiningMachine;

  beforeAll(async () => {
    fixture = await createUpFixture();
    const checkout = layOutCheckout(fixture.dataDirectory);
    const directory = join(checkout, "packages");
    mkdirSync(join(checkout, "dist"));
    makeAgentPackages(join(checkout, "dist"), join(checkout, "bin/rollcall"));
    machine = createJoiningMachine();
    place = { checkout, instead: { "/var/lib/rollcall-packages": directory } };
    const settings = ["--set", `Join.PackagesDir=${directory}`];
    await fixture.up("--tls", "--no-agent", "--join-tokens=strict", "--manual-approval", ...settings);
  }, START_LIMIT_MS);
  afterAll(async () => {
    machine.dispose();
    await fixture.dispose();
    rmSync(place.checkout, { recursive: true, force: true });
  }, START_LIMIT_MS);

  /** Create a token. Returns what the pages show as words in capitals. */
  async function printedWords(): Promise<Readonly<Record<string, string>>> {
    const { checkout: cwd } = place;
    const program = join(cwd, "bin/rollcall");
    const { stdout, stderr } = await promisify(execFile)(program, ["token", "create"], { cwd, env: { HOME: cwd } });
    const [, key = ""] = /--pin '?(sha256\/\/[^' ]+)/.exec(stderr) ?? [];
    const [, authority = ""] = /--ca-fingerprint (\S+)/.exec(stderr) ?? [];
    return {
      rcj_TOKEN: stdout.trim(),
      "sha256//KEY": key,
      "sha256:AUTHORITY": authority,
      "https://CONTROL_PLANE:7700": `https://${fixture.server}`,
    };
  }

  testPage(
    "docs/how-to/join-many-machines.md",
    [
      ["packages", /^$/],
      ["token", /s=\$\(curl -fsS -k --pinnedpubkey .*ROLLCALL_JOIN_TOKEN=TOKEN sh -c "\$s" join\.sh --server https:/],
      ["join", new RegExp(`${hostname()} has joined https:`)],
      ["approve", new RegExp(`Ok[\\s\\S]*\n${hostname()} .*approved[\\s\\S]*1 of 50`)],
    ],
    () => place,
    {
      before: {
        join: async () => {
          const instead = { ...(await printedWords()), "/root/join-token": join(place.checkout, "join-token") };
          place = { ...place, instead, env: { ...machine.env, FAKE_HOST: hostname() } };
        },
        approve: async () => {
          place = { checkout: place.checkout, instead: {} };
          await until("the agent to connect", () => machine.agentLog().includes('"msg":"connected"'));
        },
      },
    },
  );

  testPage("docs/how-to/cloud-init.md", [["token", /ROLLCALL_JOIN_TOKEN=TOKEN sh -c/]], () => place);

  it(
    "should join a machine by the file for cloud-init",
    async () => {
      machine.dispose();
      machine = createJoiningMachine();
      const words = await printedWords();
      const text = readFileSync(join(workspaceRoot, "deploy/cloud-init/rollcall.yaml"), "utf8");
      expect(text.split("\n", 1)).toEqual(["#cloud-config"]);
      const filled = Object.entries(words).reduce((all, [word, to]) => all.replaceAll(word, to), text);
      const { packages, write_files: files, runcmd, ...others } = parse(filled);
      expect([packages, others]).toEqual([["curl"], {}]);
      expect(files).toEqual([
        { path: "/run/rollcall-join-token", permissions: "0600", content: `${words.rcj_TOKEN}\n` },
      ]);
      // Do what cloud-init does: write the file, and run the command with sh.
      const path = join(machine.root, files[0].path);
      writeFileSync(path, files[0].content);
      expect(runcmd).toHaveLength(1);
      const [command] = runcmd;
      expect(command).toContain("join.sh --server");
      const here = command.replaceAll(files[0].path, path).replace("join.sh --server", "join.sh --name cloud --server");
      const end = await machine.run(here);
      expect(end).toEqual({ code: 0, err: "", out: expect.stringContaining("cloud has joined") });
      expect(existsSync(path)).toBe(false);

      // A machine that cannot join reports it, and keeps no token either.
      writeFileSync(path, files[0].content);
      const failed = await machine.run(here.replaceAll(`https://${fixture.server}`, "https://127.0.0.1:1"));
      expect(failed.code).not.toBe(0);
      expect(existsSync(path)).toBe(false);
    },
    START_LIMIT_MS,
  );
});
