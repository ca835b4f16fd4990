export {
  type CertificateRequest,
  createAuthority,
  type Issued,
  issueCertificate,
  type Validity,
} from "./issue-certificate.ts";
