import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import tls from "node:tls";
import { TlsSource } from "@rollcall/identity";
import { systemClock } from "@rollcall/process";
import { TestAuthority } from "./certificates.ts";
import { captureLog } from "./log-capture.ts";

/** An authority of a test's own, what it signs, and whatever the test has to close. */
export class TlsFixture {
  readonly authority = new TestAuthority();
  readonly #closers: (() => unknown)[] = [];

  /** Close something at the end, the latest first. */
  atEnd(close: () => unknown): void {
    this.#closers.push(close);
  }

  async end(): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
    rmSync(this.authority.dir, { recursive: true, force: true });
  }

  /** A certificate for this machine, which `authority.write("server")` replaces. */
  openSource(asksClients = false): Promise<TlsSource> {
    const { authority } = this;
    const clientCaFile = asksClients ? authority.caFile : undefined;
    const files = { ...authority.write("server"), clientCaFile };
    return TlsSource.open({ files, clock: systemClock, log: captureLog().log });
  }

  /** What a client brings along: the authority that it trusts, and perhaps a certificate. */
  clientTls(hasCertificate = false) {
    const { certPem, keyPem } = this.authority.issue({ usage: "client", names: [] });
    const ca = readFileSync(this.authority.caFile);
    return hasCertificate ? { ca, cert: certPem, key: keyPem } : { ca };
  }

  /** The number of the certificate with which a port answers now. */
  async serialOf(port: number, protocol = "h2"): Promise<string> {
    const options = { port, host: "127.0.0.1", ALPNProtocols: [protocol], ...this.clientTls() };
    const socket = tls.connect(options);
    await once(socket, "secureConnect");
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  }
}
