import { X509Certificate } from "node:crypto";
import type { SecureContextOptions } from "node:tls";
import { type Clock, counter, gauge, type Logger, Loop, type MetricsRegistry, type Task } from "@rollcall/process";
import { fingerprintOf } from "./authority.ts";
import { checkTlsPems, contextOf, readTlsFiles, type TlsFiles, type TlsMaterial } from "./tls-files.ts";

export interface TlsSourceOptions {
  readonly files: TlsFiles;
  readonly clock: Clock;
  readonly log: Logger;
  /** The interval between checks of the files. Default 2 s. */
  readonly pollMs?: number;
}

const POLL_MS = 2_000;
/** How long before the certificate expires to warn, in milliseconds. Automatic renewal happens earlier. */
const EXPIRY_NOTICE_MS = 3 * 86_400_000;

/**
 * The current certificate of a process's servers, reloaded from files. One source can serve several ports; each port
 * is notified of a new certificate and uses it for new connections. Files can be replaced in any way, because their
 * content is compared.
 */
export class TlsSource {
  readonly #options: TlsSourceOptions;
  readonly #listeners = new Set<(context: SecureContextOptions) => void>();
  #material: TlsMaterial;
  /** The last invalid content, and whether it was logged. */
  #broken: { readonly digest: string; readonly isSaid: boolean } | null = null;
  #metrics: MetricsRegistry | null = null;

  private constructor(options: TlsSourceOptions, material: TlsMaterial) {
    this.#options = options;
    this.#material = material;
  }

  /**
   * Read the files. Throws TlsFileError when the files are unusable. Warns about a certificate that is not currently
   * valid, but uses it.
   */
  static async open(options: TlsSourceOptions): Promise<TlsSource> {
    const { files, log } = options;
    const material = checkTlsPems(await readTlsFiles(files), files);
    const source = new TlsSource(options, material);
    log.info(source.#fields(), "tls certificate loaded");
    source.#warn();
    return source;
  }

  /** The options for `tls.createServer` and `setSecureContext`. */
  get context(): SecureContextOptions {
    return contextOf(this.#material);
  }

  /** Whether clients must present a certificate. This never changes. */
  get asksClients(): boolean {
    return this.#options.files.clientCaFile !== undefined;
  }

  /** The certificate's host names and addresses. A wildcard is replaced by one name that matches it. */
  get names(): readonly string[] {
    const { subjectAltName = "" } = new X509Certificate(this.#material.cert);
    const names = [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)];
    return names.map(([, name = ""]) => name.replace(/^\*/, "rollcall"));
  }

  /** The host names of the current certificate, including wildcards. */
  get hostNames(): readonly string[] {
    return this.#material.hostNames;
  }

  /** The authority of the current certificate, as PEM; null when it is unknown. */
  get authority(): string | null {
    return this.#material.authority;
  }

  /** The certificates of `authority`, for agents to store; empty when there are more than MOST_AUTHORITIES. */
  get authorities(): readonly X509Certificate[] {
    return this.#material.authorities;
  }

  /** The authority that verifies the current certificate; null when it is unknown. */
  get verifiedBy(): X509Certificate | null {
    return this.#material.verifiedBy;
  }

  /** When the certificate expires, in milliseconds since 1970. */
  get notAfterMs(): number {
    return this.#material.notAfterMs;
  }

  /** Subscribe to new certificates. Returns an unsubscribe function. */
  onChange(listener: (context: SecureContextOptions) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Expose the certificate's expiry and the number of reloads. */
  measure(metrics: MetricsRegistry): void {
    this.#metrics = metrics;
    this.#expiryGauge(metrics).set(this.#material.notAfterMs / 1000);
  }

  /** The task that polls the files. */
  get task(): Task {
    const { clock, pollMs = POLL_MS } = this.#options;
    return new Loop({
      name: "tls-reload",
      everyMs: pollMs,
      clock,
      turn: () => this.#look(false),
    });
  }

  /** Check the files now. Problems are logged, and the current certificate stays in use. Never rejects. */
  reload(): Promise<void> {
    return this.#look(true);
  }

  async #look(isAsked: boolean): Promise<void> {
    const { files, log } = this.#options;
    let digest = "";
    try {
      const pems = await readTlsFiles(files);
      digest = pems.digest;
      if (digest === this.#material.digest) {
        this.#broken = null;
        return;
      }
      const material = checkTlsPems(pems, files);
      this.#take(material);
    } catch (error) {
      this.#refuse(digest, isAsked, error);
      return;
    }
    this.#broken = null;
    log.info(this.#fields(), "tls certificate replaced");
    this.#warn();
  }

  #take(material: TlsMaterial): void {
    this.#material = material;
    for (const listener of this.#listeners) listener(this.context);
    if (this.#metrics === null) return;
    this.#expiryGauge(this.#metrics).set(material.notAfterMs / 1000);
    this.#countReload("replaced");
  }

  /**
   * Log a problem only when the next check finds it again, and only once. Two files are rarely replaced at the same
   * instant, so a check can read the new certificate with the old key.
   */
  #refuse(digest: string, isAsked: boolean, error: unknown): void {
    const isSame = this.#broken?.digest === digest;
    const isSaid = isSame && this.#broken?.isSaid === true;
    const say = !isSaid && (isSame || isAsked);
    this.#broken = { digest, isSaid: isSaid || say };
    if (!say) return;
    this.#countReload("refused");
    const problem = error instanceof Error ? error.message : String(error);
    this.#options.log.error(
      { problem, in_use_until: new Date(this.#material.notAfterMs).toISOString() },
      "cannot replace the tls certificate, keeping the current one",
    );
  }

  #warn(): void {
    const { clock, log } = this.#options;
    const nowMs = clock.wallMs();
    const { notBeforeMs, notAfterMs } = this.#material;
    const fields = this.#fields();
    if (nowMs > notAfterMs) log.warn(fields, "tls certificate has expired, clients will refuse it");
    else if (nowMs < notBeforeMs) log.warn(fields, "tls certificate is not valid yet");
    else if (notAfterMs - nowMs < EXPIRY_NOTICE_MS) log.warn(fields, "tls certificate expires soon");
  }

  #fields() {
    const { subject, notBeforeMs, notAfterMs, verifiedBy } = this.#material;
    return {
      cert_file: this.#options.files.certFile,
      subject,
      not_before: new Date(notBeforeMs).toISOString(),
      not_after: new Date(notAfterMs).toISOString(),
      ...(verifiedBy && { verified_by: fingerprintOf(verifiedBy) }),
      client_certificates: this.asksClients ? "required" : "not asked for",
    };
  }

  #expiryGauge(metrics: MetricsRegistry) {
    return gauge(metrics, {
      name: "rollcall_tls_certificate_expiry_timestamp_seconds",
      help: "When the server's current TLS certificate expires, in seconds since 1970.",
    });
  }

  #countReload(outcome: "replaced" | "refused"): void {
    if (this.#metrics === null) return;
    counter(this.#metrics, {
      name: "rollcall_tls_certificate_reloads_total",
      help: "Reloads of the server's TLS certificate after its files changed, by outcome.",
      labelNames: ["outcome"],
    }).inc({ outcome });
  }
}
