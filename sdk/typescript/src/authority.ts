// Fetches the authority of a server's certificate, given only its fingerprint.
import { X509Certificate } from "node:crypto";
import { get } from "node:https";
import { isIP } from "node:net";
import { Code } from "@connectrpc/connect";
import type { Address } from "./addresses.ts";
import { ConfigurationError, UnreachableError } from "./errors.ts";

const PATH = "/ca.pem";
const TIMEOUT_MS = 10_000;
const MOST_BYTES = 64 * 1024;

/**
 * Fetch the authority with this fingerprint, as PEM, from a server that is not trusted yet. Sends no credentials and
 * does not trust the handshake. The server must prove its identity on the next connection, which trusts only this
 * authority. Rejects with UnreachableError, and with ConfigurationError for a different authority.
 */
export async function fetchAuthority(
  address: Address,
  serverName: string | null,
  fingerprint: string,
): Promise<string> {
  const served = certificatesIn(await download(address, serverName));
  const found = served.find((it) => fingerprintOf(it) === fingerprint);
  if (found !== undefined) return String(found);
  const others = served.map(fingerprintOf).join(", ") || "none";
  throw new ConfigurationError(
    `the authority of ${address.baseUrl} has the fingerprint ${others}, not ${fingerprint}: use the one that ` +
      "`rollcall token create` shows, or find out which server answers there",
  );
}

function fingerprintOf(certificate: X509Certificate): string {
  return `sha256:${certificate.fingerprint256.replaceAll(":", "").toLowerCase()}`;
}

function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      // An invalid certificate has no fingerprint, so ignore it.
      return [];
    }
  });
}

function download({ host, port, baseUrl }: Address, serverName: string | null): Promise<string> {
  const name = serverName ?? host;
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: unknown) => {
      request.destroy();
      const message = `cannot fetch the authority of ${baseUrl}: ${why}`;
      reject(new UnreachableError({ code: Code.Unavailable, message, cause }));
    };
    const request = get(
      {
        host,
        port,
        path: PATH,
        agent: false,
        servername: isIP(name) === 0 ? name : "",
        minVersion: "TLSv1.2",
        signal: AbortSignal.timeout(TIMEOUT_MS),
        // Accept any certificate. The server cannot be verified before its authority is known. The response is
        // public, and its fingerprint is checked.
        rejectUnauthorized: false,
      },
      (response) => {
        let text = "";
        response.setEncoding("latin1");
        response.on("error", (error) => fail(error.message, error));
        response.on("data", (part: string) => {
          text += part;
          if (text.length > MOST_BYTES) fail("the response is too long");
        });
        response.on("end", () => {
          if (response.statusCode === 200) resolve(text);
          else fail(`status ${response.statusCode}; use the authority's file instead`);
        });
      },
    );
    request.on("error", (error) => fail(error.message, error));
  });
}
