import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { systemCodeOf } from "../failure.ts";

/** An address to connect to. */
export interface ProbedAddress {
  /** As it is shown. */
  readonly subject: string;
  readonly host: string;
  readonly port: number;
  /** What to trust over TLS; null in clear text. */
  readonly tls: { readonly caFile: string | null; readonly serverName: string | null } | null;
}

/** The outcome of connecting. */
export interface Probe {
  readonly subject: string;
  readonly host: string;
  /** Why there was no connection, as a system error or in words; null when there was one. */
  readonly failure: string | null;
  /** The certificate that was shown; null without one, and in clear text. */
  readonly certificate: ShownCertificate | null;
  readonly isTls: boolean;
}

/** A certificate as the server shows it. */
export interface ShownCertificate {
  readonly endsAtMs: number;
  /** Why it cannot be trusted, as OpenSSL's code and words; empty when it can. */
  readonly distrust: string;
  /** How many certificates were sent with it. */
  readonly chain: number;
}

const LIMIT_MS = 3_000;
const LONGEST_CHAIN = 10;

/** Connect to an address, and look at the certificate of one that speaks TLS. Never rejects. */
export async function probeAddress(address: ProbedAddress, signal: AbortSignal): Promise<Probe> {
  const { subject, host, tls } = address;
  const probe = { subject, host, isTls: tls !== null };
  try {
    const certificate = await connectOnce(address, AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]));
    return { ...probe, failure: null, certificate };
  } catch (error) {
    const isLate = error instanceof Error && error.name === "TimeoutError";
    const words = error instanceof Error ? error.message : String(error);
    return { ...probe, failure: isLate ? "ETIMEDOUT" : (systemCodeOf(error) ?? words), certificate: null };
  }
}

function connectOnce({ host, port, tls }: ProbedAddress, signal: AbortSignal): Promise<ShownCertificate | null> {
  return new Promise((resolve, reject) => {
    let socket: Socket | TLSSocket | null = null;
    const end = (settle: () => void) => {
      signal.removeEventListener("abort", onAbort);
      socket?.destroy();
      settle();
    };
    const onAbort = () => end(() => reject(signal.reason));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      if (tls === null) {
        socket = connect({ host, port }, () => end(() => resolve(null)));
      } else {
        const ca = tls.caFile === null ? {} : { ca: readFileSync(tls.caFile) };
        const name = tls.serverName ?? host;
        // An address is no name that TLS could send.
        const servername = /^[\d.]+$|:/.test(name) ? {} : { servername: name };
        const options = { host, port, rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] };
        const secure = connectTls({ ...options, ...ca, ...servername }, () => {
          const shown = certificateOf(secure);
          end(() => resolve(shown));
        });
        socket = secure;
      }
    } catch (error) {
      end(() => reject(error));
      return;
    }
    socket.on("error", (error) => end(() => reject(error)));
  });
}

function certificateOf(socket: TLSSocket): ShownCertificate {
  const certificate = socket.getPeerCertificate(true);
  let chain = 1;
  let current = certificate;
  while (chain < LONGEST_CHAIN && current.issuerCertificate && current.issuerCertificate !== current) {
    current = current.issuerCertificate;
    chain += 1;
  }
  const error: unknown = socket.authorizationError;
  const distrust = socket.authorized || !error ? "" : distrustText(error);
  return { endsAtMs: Date.parse(certificate.valid_to), distrust, chain };
}

/** Node has the code alone in some releases, and an error in others. */
function distrustText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? `${String(error.code)} ` : "";
  return `${code}${error.message}`;
}
