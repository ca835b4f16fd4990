export { type CertificateRequest, createAuthority, type Issued, issueCertificate } from "./issue-certificate.ts";
