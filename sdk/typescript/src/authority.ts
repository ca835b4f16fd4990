// The authority of a server's certificate that is known by its fingerprint alone.
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
 * Fetch the authority of this fingerprint from a server that is not trusted yet, and return it as PEM. No credentials
 * are sent, and nothing that the server shows in the handshake counts: it proves itself by the next connection, which
 * has to be verified with this authority alone. Rejects with UnreachableError, and ConfigurationError for another one.
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
    `the authority of ${address.baseUrl} has the fingerprint ${others}, not ${fingerprint}: take the one that ` +
      "`rollcall token create` shows, or find out what answers there",
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
      // What is no certificate has no fingerprint.
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
        // Without an authority there is nothing to check with. What comes is public, and is checked by its fingerprint.
        rejectUnauthorized: false,
      },
      (response) => {
        let text = "";
        response.setEncoding("latin1");
        response.on("error", (error) => fail(error.message, error));
        response.on("data", (part: string) => {
          text += part;
          if (text.length > MOST_BYTES) fail("its answer is too long");
        });
        response.on("end", () => {
          if (response.statusCode === 200) resolve(text);
          else fail(`it answers ${response.statusCode}; name the authority's file instead`);
        });
      },
    );
    request.on("error", (error) => fail(error.message, error));
  });
}
