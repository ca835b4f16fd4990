import { execFile } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { until } from "../../libs/testkit/src/until.ts";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../support/checkout.ts";
import { createJoiningMachine, type JoiningMachine, makeAgentPackages } from "../support/joining-machine.ts";
import { type CommandPlace, testPage } from "../support/page-commands.ts";

const START_LIMIT_MS = 120_000;

describe("docs/how-to/join-many-machines.md", () => {
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
    const settings = ["--set", `Join.PackagesDir=${directory}`, "--set", "Compute.Name=here"];
    await fixture.up("--tls", "--no-agent", "--join-tokens=strict", "--manual-approval", ...settings);
  }, START_LIMIT_MS);
  afterAll(async () => {
    machine.dispose();
    await fixture.dispose();
    rmSync(place.checkout, { recursive: true, force: true });
  }, START_LIMIT_MS);

  testPage(
    "docs/how-to/join-many-machines.md",
    [
      ["packages", /^$/],
      ["token", /s=\$\(curl -fsS -k --pinnedpubkey .*ROLLCALL_JOIN_TOKEN=TOKEN sh -c "\$s" join\.sh --server https:/],
      ["join", new RegExp(`${hostname()} has joined https:`)],
      ["approve", new RegExp(`Ok[\\s\\S]*\n${hostname()} .*APPROVED[\\s\\S]*1 of 50`)],
    ],
    () => place,
    {
      before: {
        // The page shows words in capitals instead of what the printed line contains.
        join: async () => {
          const { checkout: cwd } = place;
          const program = join(cwd, "bin/rollcall");
          const { stderr } = await promisify(execFile)(program, ["token", "create"], { cwd, env: { HOME: cwd } });
          const [, key = ""] = /--pin '?(sha256\/\/[^' ]+)/.exec(stderr) ?? [];
          const [, authority = ""] = /--ca-fingerprint (\S+)/.exec(stderr) ?? [];
          place = {
            ...place,
            instead: {
              "/root/join-token": join(place.checkout, "join-token"),
              "sha256//KEY": key,
              "sha256:AUTHORITY": authority,
              "https://CONTROL_PLANE:7700": `https://${fixture.server}`,
            },
            env: { ...machine.env, FAKE_HOST: hostname() },
          };
        },
        approve: async () => {
          place = { checkout: place.checkout, instead: {} };
          await until("the agent to connect", () => machine.agentLog().includes('"msg":"connected"'));
        },
      },
    },
  );
});
