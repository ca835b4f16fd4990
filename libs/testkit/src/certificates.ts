import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type CertificateRequest,
  createAuthority,
  type Issued,
  issueCertificate,
} from "@rollcall/identity/certificates";

/** The paths of a certificate and its key. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

const HOUR_MS = 3_600_000;

/** A separate authority for a test, and the files that it signs. */
export class TestAuthority {
  /** The directory of all files. The test must remove it. */
  readonly dir: string;
  readonly caFile: string;
  readonly #authority: Issued;

  constructor(dir = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-certificates-"))) {
    this.dir = dir;
    this.#authority = createAuthority({ commonName: "a test's authority", ...validNow() });
    this.caFile = join(dir, "ca.pem");
    writeFileSync(this.caFile, this.#authority.certPem);
  }

  /** Sign a certificate. A server certificate is valid for this machine by address and by name. */
  issue(request: Partial<CertificateRequest> = {}): Issued {
    const names = ["127.0.0.1", "::1", "localhost"];
    const defaults = { commonName: "a test", names, usage: "server" as const, ...validNow() };
    return issueCertificate(this.#authority, { ...defaults, ...request });
  }

  /** Sign the key and name of another authority. Returns the intermediate certificate as PEM. */
  crossSign(other: TestAuthority): string {
    const keyFile = join(this.dir, "ca-key.pem");
    writeFileSync(keyFile, this.#authority.keyPem, { mode: 0o600 });
    const signer = ["-CA", this.caFile, "-CAkey", keyFile, "-set_serial", "2", "-days", "1"];
    return execFileSync("openssl", ["x509", "-in", other.caFile, ...signer], { encoding: "utf8", stdio: "pipe" });
  }

  /** Sign a certificate and write it to `<name>.pem` and `<name>-key.pem`, replacing existing files. */
  write(name: string, request: Partial<CertificateRequest> = {}): CertificateFiles {
    const { certPem, keyPem } = this.issue(request);
    const files = {
      certFile: join(this.dir, `${name}.pem`),
      keyFile: join(this.dir, `${name}-key.pem`),
    };
    writeFileSync(files.certFile, certPem);
    writeFileSync(files.keyFile, keyPem, { mode: 0o600 });
    return files;
  }
}

/** Return a validity period from an hour ago until tomorrow. */
export function validNow() {
  const nowMs = Date.now();
  return { notBeforeMs: nowMs - HOUR_MS, notAfterMs: nowMs + 24 * HOUR_MS };
}
