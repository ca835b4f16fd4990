import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import tls from "node:tls";
import { TlsSource } from "@rollcall/identity";
import { systemClock } from "@rollcall/process";
import { TestAuthority } from "./certificates.ts";
import { captureLog } from "./log-capture.ts";

/**
 * A separate authority for a test, its certificates, and everything that must be closed at the
 * end.
 */
export class TlsFixture {
  readonly authority = new TestAuthority();
  readonly #closers: (() => unknown)[] = [];

  /** Register something to close at the end, in reverse order of registration. */
  atEnd(close: () => unknown): void {
    this.#closers.push(close);
  }

  async end(): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
    rmSync(this.authority.dir, { recursive: true, force: true });
  }

  /**
   * Open a source with a certificate for this machine. Replace the certificate with
   * `authority.write("server")`.
   */
  openSource(asksClients = false): Promise<TlsSource> {
    const { authority } = this;
    const clientCaFile = asksClients ? authority.caFile : undefined;
    const files = { ...authority.write("server"), clientCaFile };
    return TlsSource.open({ files, clock: systemClock, log: captureLog().log });
  }

  /**
   * Return TLS options of a client: the authority to trust and, optionally, a client
   * certificate.
   */
  clientTls(hasCertificate = false) {
    const { certPem, keyPem } = this.authority.issue({ usage: "client", names: [] });
    const ca = readFileSync(this.authority.caFile);
    return hasCertificate ? { ca, cert: certPem, key: keyPem } : { ca };
  }

  /** Get the serial number of the certificate that a port currently presents. */
  async serialOf(port: number, protocol = "h2"): Promise<string> {
    const options = { port, host: "127.0.0.1", ALPNProtocols: [protocol], ...this.clientTls() };
    const socket = tls.connect(options);
    await once(socket, "secureConnect");
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  }
}
