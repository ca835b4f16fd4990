/** Explains to a user why a TLS handshake failed. */
export interface TlsTrouble {
  /** The problem, as a phrase about the server, for example "its certificate has expired". */
  readonly problem: string;
  /** What to do about it. */
  readonly advice: string;
  /** The client option that the advice refers to. */
  readonly option?: TlsOption;
}

/** Options that advice can refer to. Each program has its own names for them. */
export type TlsOption = "authority" | "server-name" | "client-certificate";

type Row = TlsTrouble & { readonly pattern: RegExp };

// The known problems. The first match applies. The patterns match both error codes and messages of Node.js and OpenSSL,
// because some libraries pass on only the message.
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
    problem: "its certificate was issued by an authority that is not trusted here",
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
    problem: "its certificate does not cover the name that was used to reach it",
    advice: "use a name that the certificate covers in the address, or set the name to expect",
    option: "server-name",
  },
  {
    pattern:
      /WRONG_VERSION_NUMBER|wrong version number|packet length too long|PACKET_LENGTH_TOO_LONG|http request|record layer failure/,
    problem: "it does not speak TLS",
    advice: "use http:// instead of https:// in the address, and remove the setting for the certificate authority",
  },
  {
    pattern: /alert certificate required|ALERT_CERTIFICATE_REQUIRED|alert bad certificate/i,
    problem: "it accepts only clients with a certificate",
    advice: "present a certificate",
    option: "client-certificate",
  },
  {
    pattern: /alert protocol version|UNSUPPORTED_PROTOCOL|ALERT_PROTOCOL_VERSION/i,
    problem: "it supports no TLS version that is accepted here",
    advice: "use TLS 1.2 or newer",
  },
];

/** Explain a client's error, given its code or message; null if it is not a known TLS error. */
export function explainTlsError(codeAndText: string): TlsTrouble | null {
  const row = ROWS.find(({ pattern }) => pattern.test(codeAndText));
  if (row === undefined) return null;
  const { pattern: _, ...trouble } = row;
  return trouble;
}
