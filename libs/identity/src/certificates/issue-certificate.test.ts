import { createPrivateKey, X509Certificate } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { createAuthority, issueCertificate } from "./issue-certificate.ts";

const DAY_MS = 86_400_000;
const notBeforeMs = Date.UTC(2026, 0, 2, 3, 4, 5);

describe("issueCertificate()", () => {
  const authority = createAuthority({
    commonName: "a test's authority, ü",
    notBeforeMs,
    // End after 2049, because certificates encode these years differently.
    notAfterMs: notBeforeMs + 36_500 * DAY_MS,
  });

  it("should make a self-signed authority that can sign others", () => {
    const certificate = new X509Certificate(authority.certPem);
    expect(certificate.ca).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.subject).toBe("CN=a test's authority\\, ü");
    expect(Date.parse(certificate.validTo)).toBe(notBeforeMs + 36_500 * DAY_MS);
  });

  it("should make a certificate for names and addresses, signed by the authority", () => {
    const names = ["localhost", "bücher.example", "127.0.0.1", "::1", "2001:db8::10:0:1"];
    const issued = issueCertificate(authority, {
      commonName: "server",
      names,
      usage: "server",
      notBeforeMs,
      notAfterMs: notBeforeMs + DAY_MS,
    });
    const certificate = new X509Certificate(issued.certPem);
    const ca = new X509Certificate(authority.certPem);
    expect(certificate.ca).toBe(false);
    expect(certificate.checkIssued(ca)).toBe(true);
    expect(certificate.verify(ca.publicKey)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(issued.keyPem))).toBe(true);
    expect(Date.parse(certificate.validFrom)).toBe(notBeforeMs);
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
    expect(certificate.checkHost("localhost")).toBe("localhost");
    expect(certificate.checkHost("xn--bcher-kva.example")).toBe("xn--bcher-kva.example");
    for (const address of names.slice(2)) expect(certificate.checkIP(address)).toBeDefined();
    expect(certificate.checkIP("2001:db8::10:0:2")).toBeUndefined();
  });

  it("should give each certificate a unique serial number", () => {
    const request = { commonName: "c", names: [], usage: "client" as const };
    const numbers = [1, 2].map(() => {
      const times = { notBeforeMs, notAfterMs: notBeforeMs + DAY_MS };
      const { certPem } = issueCertificate(authority, { ...request, ...times });
      return new X509Certificate(certPem).serialNumber;
    });
    expect(new Set(numbers).size).toBe(2);
  });
});
