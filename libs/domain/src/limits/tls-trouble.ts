/** Why a TLS handshake failed, for the client's user. */
export interface TlsTrouble {
  /** What is wrong, as the end of a sentence that begins with the server. */
  readonly problem: string;
  /** What to do about it. */
  readonly advice: string;
  /** The client's option that the advice asks for. */
  readonly option?: TlsOption;
}

/** What a client can be told about TLS; each program has words of its own for it. */
export type TlsOption = "authority" | "server-name" | "client-certificate";

type Row = TlsTrouble & { readonly pattern: RegExp };

// The codes are Node's and OpenSSL's; the texts are what is left of them when a library hands an error on.
const ROWS: readonly Row[] = [
  {
    pattern: /DEPTH_ZERO_SELF_SIGNED_CERT|self-signed certificate(?! in)/,
    problem: "its certificate is self-signed, and not trusted here",
    advice: "trust that certificate, if it is the right one",
    option: "authority",
  },
  {
    pattern:
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT|SELF_SIGNED_CERT_IN_CHAIN|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED|unable to verify the first certificate|unable to get (local )?issuer certificate|self-signed certificate in certificate chain|certificate signature failure/,
    problem: "its certificate is of an authority that is not trusted here",
    advice: "trust the authority's certificate",
    option: "authority",
  },
  {
    pattern: /CERT_HAS_EXPIRED|certificate has expired/,
    problem: "its certificate has expired",
    advice: "renew it at the server, or set this machine's clock",
  },
  {
    pattern: /CERT_NOT_YET_VALID|certificate is not yet valid/,
    problem: "its certificate is not valid yet",
    advice: "set this machine's clock, or the server's",
  },
  {
    pattern: /ERR_TLS_CERT_ALTNAME|does not match certificate's altnames/,
    problem: "its certificate is for other names than the one it was called by",
    advice: "use one of its names in the address, or say which one to expect",
    option: "server-name",
  },
  {
    pattern:
      /WRONG_VERSION_NUMBER|wrong version number|packet length too long|PACKET_LENGTH_TOO_LONG|http request|record layer failure/,
    problem: "it does not speak TLS",
    advice: "use http:// instead of https:// in the address, and name no authority",
  },
  {
    pattern: /alert certificate required|ALERT_CERTIFICATE_REQUIRED|alert bad certificate/i,
    problem: "it takes only clients with a certificate",
    advice: "present a certificate",
    option: "client-certificate",
  },
  {
    pattern: /alert protocol version|UNSUPPORTED_PROTOCOL|ALERT_PROTOCOL_VERSION/i,
    problem: "it speaks no version of TLS that is taken here",
    advice: "TLS 1.2 is the oldest that is taken",
  },
];

/** Explain an error of a client by its code or its text; null when it is no known error of TLS. */
export function explainTlsError(codeAndText: string): TlsTrouble | null {
  const row = ROWS.find(({ pattern }) => pattern.test(codeAndText));
  if (row === undefined) return null;
  const { pattern: _, ...trouble } = row;
  return trouble;
}
