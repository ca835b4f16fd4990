import type { X509Certificate } from "node:crypto";

/** Maximum length of a chain. Most clients reject longer chains. */
const MOST_CHAIN = 10;

/**
 * Whether a certificate is self-signed. Node.js and OpenSSL accept only a self-signed certificate as the end of a
 * chain, so an intermediate or cross-signed certificate without its root verifies nothing.
 */
export function isRoot(certificate: X509Certificate): boolean {
  return certificate.issuer === certificate.subject && certificate.verify(certificate.publicKey);
}

/**
 * Find the roots that verify a certificate, by signatures only. The handshake checks dates and names.
 *
 * @param chain the certificate, followed by possible intermediate certificates in any order.
 */
export function authoritiesOf(
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): readonly X509Certificate[] {
  const [leaf, ...between] = chain.slice(0, MOST_CHAIN);
  if (leaf === undefined) return [];
  const path = [leaf];
  for (let at = 0; at < path.length && path.length <= MOST_CHAIN; at += 1) {
    const last = path[at];
    if (last === undefined) break;
    path.push(...between.filter((it) => !path.includes(it) && isIssuedBy(last, it)));
  }
  return authorities.filter(
    (authority) =>
      isRoot(authority) &&
      path.some((it) => it.fingerprint256 === authority.fingerprint256 || isIssuedBy(it, authority)),
  );
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}
