import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createAuthority, type Issued, issueCertificate } from "@rollcall/identity/certificates";
import { findJoinScript } from "./find-join-script.ts";

const HOUR_MS = 3_600_000;
const valid = () => ({ notBeforeMs: Date.now() - HOUR_MS, notAfterMs: Date.now() + HOUR_MS });
const authority = (commonName: string) => createAuthority({ commonName, ...valid() });
const certificateBy = (signer: Issued) =>
  issueCertificate(signer, { commonName: "registry", names: ["127.0.0.1"], usage: "server", ...valid() });

let folder: string;
let servers: { close(): unknown }[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-join-script-"));
  servers = [];
});
afterEach(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function listening(server: Server | ReturnType<typeof createHttpServer>, scheme: string): Promise<string> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function trusting({ certPem }: Issued) {
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, certPem);
  return { caFile, serverName: null };
}

const NO_FILE = { caFile: null, serverName: null };

describe("findJoinScript()", () => {
  it("should find the pin that curl accepts", async () => {
    const ours = authority("ours");
    const { certPem, keyPem } = certificateBy(ours);
    const paths: (string | undefined)[] = [];
    const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
      paths.push(request.url);
      response.end("script");
    });
    const url = await listening(server, "https");
    const key = new X509Certificate(certPem).publicKey.export({ type: "spki", format: "der" });
    const pin = `sha256//${createHash("sha256").update(key).digest("base64")}`;
    expect(await findJoinScript(url, trusting(ours))).toEqual({ pin });
    expect(paths).toEqual(["/join.sh"]);
  });

  it("should find nothing at a server with another authority, or without the script", async () => {
    const ours = authority("ours");
    const { certPem, keyPem } = certificateBy(ours);
    let status = 200;
    const server = createServer({ cert: certPem, key: keyPem }, (_, response) => response.writeHead(status).end());
    const url = await listening(server, "https");
    expect(await findJoinScript(url, trusting(authority("other")))).toBeNull();
    // The system does not trust it either.
    expect(await findJoinScript(url, NO_FILE)).toBeNull();
    expect(await findJoinScript(url, trusting(ours))).not.toBeNull();
    status = 404;
    expect(await findJoinScript(url, trusting(ours))).toBeNull();
  });

  it("should not be used if the agent needs a name or a path that the script cannot give it", async () => {
    const url = await listening(
      createHttpServer((_, response) => response.end()),
      "http",
    );
    expect(await findJoinScript(url, NO_FILE)).toEqual({ pin: null });
    expect(await findJoinScript(`${url}/rollcall`, NO_FILE)).toBeNull();
    expect(await findJoinScript(url, { caFile: null, serverName: "rollcall.example" })).toBeNull();
  });

  it("should not be used in clear text beyond this machine, and not be asked for", async () => {
    expect(await findJoinScript("http://192.0.2.1:7700", NO_FILE)).toBeNull();
  });

  it("should find nothing if nobody answers", async () => {
    expect(await findJoinScript("http://127.0.0.1:1", NO_FILE)).toBeNull();
  });
});
