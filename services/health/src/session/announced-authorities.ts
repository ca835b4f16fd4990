import { createHash, type X509Certificate } from "node:crypto";

/** The authorities that agents should trust. */
export interface AnnouncedAuthorities {
  /** The certificates, each in DER. */
  readonly certificates: readonly Uint8Array[];
  /** Hexadecimal; a Hello carries the same digest. */
  readonly digest: string;
}

function announcementOf(certificates: readonly X509Certificate[]): AnnouncedAuthorities | null {
  if (certificates.length === 0) return null;
  const ders = certificates.map(({ raw }) => raw);
  const fingerprints = ders.map((der) => createHash("sha256").update(der).digest());
  const digest = createHash("sha256");
  for (const fingerprint of fingerprints.toSorted(Buffer.compare)) digest.update(fingerprint);
  return { certificates: ders, digest: digest.digest("hex") };
}

/** The authorities that agents should trust. */
export interface AuthorityFeed {
  /** The current authorities, as a new object after each change; null when unknown. */
  readonly current: AnnouncedAuthorities | null;
}

/** Follow the authorities of a source, whose array is replaced when they change. */
export function followAuthorities(source: { readonly authorities: readonly X509Certificate[] }): AuthorityFeed {
  let seen: readonly X509Certificate[] = [];
  let current: AnnouncedAuthorities | null = null;
  return {
    get current() {
      const { authorities } = source;
      if (authorities === seen) return current;
      seen = authorities;
      const next = announcementOf(authorities);
      if (next?.digest !== current?.digest) current = next;
      return current;
    },
  };
}
