import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { fingerprintOf } from "@rollcall/identity";
import { createAuthority, type Issued, issueCertificate } from "@rollcall/identity/certificates";
import { authorityToShow } from "./authority-to-show.ts";

const HOUR_MS = 3_600_000;
const valid = () => ({ notBeforeMs: Date.now() - HOUR_MS, notAfterMs: Date.now() + HOUR_MS });
const REGISTRY = "https://rollcall.example:7700";

let folder: string;
let servers: Server[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-authority-"));
  servers = [];
});
afterEach(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true, force: true });
});

const authority = (commonName: string) => createAuthority({ commonName, ...valid() });

/**
 * Start a registry with a certificate from `signer`. It serves the authorities in `served`, or responds with 404 if
 * `served` is null. Returns its base URL.
 */
async function registry(signer: Issued, served: string | null): Promise<string> {
  const { certPem, keyPem } = issueCertificate(signer, {
    ...{ commonName: "registry", names: ["127.0.0.1"], usage: "server" },
    ...valid(),
  });
  const server = createServer({ cert: certPem, key: keyPem }, (_, response) => {
    response.writeHead(served === null ? 404 : 200).end(served ?? "");
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return `https://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

function trusting(text: string) {
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, text);
  return { caFile, serverName: null };
}

describe("authorityToShow()", () => {
  it("should be the fingerprint of the served authority that verifies the registry", async () => {
    const [old, ours] = [authority("old"), authority("ours")];
    const reached = await registry(ours, `${old.certPem}${ours.certPem}`);
    const trust = trusting(`${old.certPem}${ours.certPem}`);
    const fingerprint = fingerprintOf(new X509Certificate(ours.certPem));
    expect(await authorityToShow({ reached, registry: REGISTRY, trust })).toEqual({ kind: "fingerprint", fingerprint });
  });

  it("should be the text if the registry serves no authority, or another one", async () => {
    const ours = authority("ours");
    for (const served of [null, authority("other").certPem]) {
      const reached = await registry(ours, served);
      const shown = await authorityToShow({ reached, registry: REGISTRY, trust: trusting(ours.certPem) });
      expect(shown).toEqual({ kind: "text", pem: ours.certPem });
    }
  });

  it("should be the file if its content must not be shown, or the command is for this machine", async () => {
    const ours = authority("ours");
    const reached = await registry(ours, null);
    const here = await authorityToShow({ reached, registry: reached, trust: trusting(ours.certPem) });
    expect(here).toEqual({ kind: "file", path: join(folder, "ca.pem") });
    const secret = await authorityToShow({
      reached,
      registry: REGISTRY,
      trust: trusting(`${ours.keyPem}${ours.certPem}`),
    });
    expect(secret).toEqual({ kind: "file", path: join(folder, "ca.pem") });
  });

  it("should be nothing if the system trusts the authority", async () => {
    const trust = { caFile: null, serverName: null };
    expect(await authorityToShow({ reached: REGISTRY, registry: REGISTRY, trust })).toEqual({ kind: "system" });
  });
});
