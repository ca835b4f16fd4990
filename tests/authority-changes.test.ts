import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "../libs/testkit/src/certificates.ts";
import { TlsFront } from "../services/agent/src/testing/tls-front.ts";
import { createUpFixture, type UpFixture } from "../services/rollcall/src/testing/up-fixture.ts";
import { fingerprintIn, isTrusting, userCommand } from "./support/trusted-authorities.ts";

let fixture: UpFixture;
beforeEach(async () => {
  fixture = await createUpFixture();
});
afterEach(() => fixture.dispose());

describe("an agent whose streams pass through a proxy with another authority", () => {
  const folders: string[] = [];
  const fronts: TlsFront[] = [];
  const authority = () => {
    const made = new TestAuthority(mkdtempSync(join(tmpdir(), "rollcall-authority-")));
    folders.push(made.dir);
    return made;
  };
  afterEach(() => {
    for (const front of fronts.splice(0)) front.close();
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  it("should follow its authorities through TLS.AgentCAFile, and reconnect with its previous command", async () => {
    const [former, next] = [authority(), authority()];
    const portOf = (address: string) => Number(address.split(":")[1]);
    const pair = former.issue();
    for (const address of [fixture.server, fixture.agentsAddress]) {
      fronts.push(await TlsFront.listen({ ...pair, served: readFileSync(former.caFile, "utf8"), to: portOf(address) }));
    }
    const [registry, streams] = fronts.map(({ port }) => `127.0.0.1:${port}`);
    const announced = join(former.dir, "announced.pem");
    writeFileSync(announced, readFileSync(former.caFile));
    const settings = [`Health.AdvertiseAddress=${streams}`, `TLS.AgentCAFile=${announced}`];
    await fixture.up("--no-agent", ...settings.flatMap((setting) => ["--set", setting]));
    const [before, after] = [fingerprintIn(former.caFile), fingerprintIn(next.caFile)];
    const joined = () => fixture.agentAt(`https://${registry}`, "far-1", "--ca-fingerprint", before);
    const agent = joined();
    await agent.logged("connected");
    await isTrusting(fixture, "far-1", [before]);

    const nextPair = next.issue();
    const nextFile = join(next.dir, "next.pem");
    writeFileSync(nextFile, nextPair.certPem + readFileSync(next.caFile, "utf8"));
    const check = () => userCommand(fixture, "doctor", "--certificate", nextFile);
    expect(await check()).toMatchObject({ code: 1, out: expect.stringContaining("locks out far-1") });
    appendFileSync(announced, readFileSync(next.caFile));
    await isTrusting(fixture, "far-1", [before, after]);
    expect(await check()).toMatchObject({ code: 0, out: expect.stringContaining("locks out none of 1 agent") });

    for (const front of fronts) {
      front.show(nextPair);
      front.options.served = readFileSync(next.caFile, "utf8");
      front.cut();
    }
    await agent.logged("connected", {}, 1);
    writeFileSync(announced, readFileSync(next.caFile));
    await isTrusting(fixture, "far-1", [after]);
    await agent.killed();
    await joined().logged("connected");
  });
});

describe("an agent of `up --tls`", () => {
  it("should keep its connection when the development authority loses its key and is replaced", async () => {
    const tls = (name: string) => join(fixture.dataDirectory, "tls", name);
    const up = await fixture.up("--tls", "--no-agent");
    const before = fingerprintIn(tls("ca.pem"));
    const agent = fixture.agentAt(`https://${fixture.server}`, "far-1", "--ca-fingerprint", before);
    await agent.logged("connected");
    await up.killed("SIGTERM");

    rmSync(tls("ca-key.pem"));
    const second = await fixture.up("--tls", "--no-agent");
    const { ca_fingerprint: after } = await second.logged("next development authority announced");
    await agent.logged("connected", {}, 1);
    await isTrusting(fixture, "far-1", [before, String(after)]);
    await second.killed("SIGTERM");

    rmSync(tls("server.pem"));
    await fixture.up("--tls", "--no-agent");
    await agent.logged("connected", {}, 2);
    // The agent must trust only the new authority. It accepts only a list with an authority that verifies its
    // connection.
    await isTrusting(fixture, "far-1", [String(after)]);
  });
});
