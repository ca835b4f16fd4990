import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { fingerprintOf } from "../../libs/identity/src/index.ts";
import { TestAuthority } from "../../libs/testkit/src/certificates.ts";
import { until } from "../../libs/testkit/src/index.ts";
import { RollcallProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../support/checkout.ts";
import { type CommandPlace, testPage } from "../support/page-commands.ts";

const LIMIT_MS = 120_000;

describe("the commands of the page on changing the authority", () => {
  let fixture: UpFixture;
  let place: CommandPlace;
  let former: TestAuthority;
  let up: RollcallProcess;
  const agents = new Map<string, RollcallProcess>();
  const at = (name: string) => join(place.checkout, name);
  const fingerprintIn = (name: string) => fingerprintOf(new X509Certificate(readFileSync(at(name))));

  const joined = (name: string, fingerprint: string) => {
    const process = fixture.agent(name, "--server", `https://${fixture.server}`, "--ca-fingerprint", fingerprint);
    agents.set(name, process);
    return process;
  };
  /** Restart an agent with the command that it joined with, so that it has to reconnect. */
  const restarted = async (name: string, fingerprint: string) => {
    await agents.get(name)?.killed();
    const process = joined(name, fingerprint);
    await process.logged("connected");
  };
  const trustedBy = async (name: string): Promise<readonly string[]> => {
    const env = { ROLLCALL_DATA_DIR: fixture.dataDirectory };
    const describing = new RollcallProcess(["node", "describe", name, "-o", "json"], env);
    await describing.exit();
    return JSON.parse(describing.out).info?.trust?.authorities ?? [];
  };

  beforeAll(async () => {
    fixture = await createUpFixture();
    former = new TestAuthority();
    place = { checkout: layOutCheckout(fixture.dataDirectory), instead: { "127.0.0.1:7700": fixture.server } };
    const { certFile, keyFile } = former.write("server");
    for (const [from, to] of [
      [former.caFile, "ca.pem"],
      [certFile, "server.pem"],
      [keyFile, "server-key.pem"],
    ] as const) {
      copyFileSync(from, at(to));
    }
    const files = ["--tls-cert", at("server.pem"), "--tls-key", at("server-key.pem"), "--tls-ca", at("ca.pem")];
    up = await fixture.up("--no-agent", ...files);
    await joined("web-1", fingerprintIn("ca.pem")).logged("connected");
  }, LIMIT_MS);

  afterAll(async () => {
    await fixture.dispose();
    for (const folder of [place.checkout, former.dir]) rmSync(folder, { recursive: true, force: true });
  }, LIMIT_MS);

  testPage(
    "docs/how-to/rotate-authority.md",
    [
      ["make", /control plane/],
      ["announce", /^$/],
      ["check", /next-certificate[\s\S]*locks out none of 1 agent/],
      ["switch", /^$/],
      ["finish", /web-1[\s\S]*healthy[\s\S]*--ca-fingerprint sha256:/],
    ],
    () => place,
    {
      before: {
        finish: async () => {
          await up.logged("tls certificate replaced", { verified_by: fingerprintIn("next-ca.pem") });
          // The agent's command still has the previous fingerprint.
          await restarted("web-1", fingerprintOf(new X509Certificate(readFileSync(former.caFile))));
        },
      },
    },
  );

  it("should let an agent that only trusts the new authority restart with its previous command", async () => {
    let trusted: readonly string[] = [];
    await until("the agent to drop the former authority", async () => {
      trusted = await trustedBy("web-1");
      return trusted.length === 1;
    });
    expect(trusted).toEqual([fingerprintIn("next-ca.pem")]);
    await restarted("web-1", fingerprintOf(new X509Certificate(readFileSync(former.caFile))));
  });

  it("should report the expected authority, the served one and what to do if a machine joins with the old command", async () => {
    const expected = fingerprintOf(new X509Certificate(readFileSync(former.caFile)));
    const late = joined("late-1", expected);
    const { detail } = await late.logged("connection failed");
    for (const fingerprint of [expected, fingerprintIn("next-ca.pem")]) expect(detail).toContain(fingerprint);
    expect(detail).toContain("rollcall token create");
  });
});
