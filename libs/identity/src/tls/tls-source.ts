import { X509Certificate } from "node:crypto";
import type { SecureContextOptions } from "node:tls";
import { type Clock, counter, gauge, type Logger, Loop, type MetricsRegistry, type Task } from "@rollcall/process";
import { fingerprintOf } from "./authority.ts";
import { checkTlsPems, contextOf, readTlsFiles, type TlsFiles, type TlsMaterial } from "./tls-files.ts";

export interface TlsSourceOptions {
  readonly files: TlsFiles;
  readonly clock: Clock;
  readonly log: Logger;
  /** The time between two looks at the files. Default 2 s. */
  readonly pollMs?: number;
}

const POLL_MS = 2_000;
/** A certificate that is renewed by a machine never comes so close to its end. */
const EXPIRY_NOTICE_MS = 3 * 86_400_000;

/**
 * The certificate with which servers of a process answer, as its files have it at the moment. One source may serve
 * several ports; each hears of a new certificate and takes it for new connections. The files may be replaced in any
 * way: they are compared by content.
 */
export class TlsSource {
  readonly #options: TlsSourceOptions;
  readonly #listeners = new Set<(context: SecureContextOptions) => void>();
  #material: TlsMaterial;
  /** Contents that were found broken, and whether that was said. */
  #broken: { readonly digest: string; readonly isSaid: boolean } | null = null;
  #metrics: MetricsRegistry | null = null;

  private constructor(options: TlsSourceOptions, material: TlsMaterial) {
    this.#options = options;
    this.#material = material;
  }

  /**
   * Read the files. Throws TlsFileError when they cannot be used; a certificate that is not valid now is logged, and
   * used.
   */
  static async open(options: TlsSourceOptions): Promise<TlsSource> {
    const { files, log } = options;
    const material = checkTlsPems(await readTlsFiles(files), files);
    const source = new TlsSource(options, material);
    log.info(source.#fields(), "tls certificate loaded");
    source.#warn();
    return source;
  }

  /** What `tls.createServer` and `setSecureContext` take. */
  get context(): SecureContextOptions {
    return contextOf(this.#material);
  }

  /** Whether clients must show a certificate. It does not change. */
  get asksClients(): boolean {
    return this.#options.files.clientCaFile !== undefined;
  }

  /** The host names and addresses that the certificate is for; of a wildcard one name below it. */
  get names(): readonly string[] {
    const { subjectAltName = "" } = new X509Certificate(this.#material.cert);
    const names = [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)];
    return names.map(([, name = ""]) => name.replace(/^\*/, "rollcall"));
  }

  /** The host names that the certificate in use is for, wildcards as they are. */
  get hostNames(): readonly string[] {
    return this.#material.hostNames;
  }

  /** The authority of the certificate in use, as PEM; null when it is not known. */
  get authority(): string | null {
    return this.#material.authority;
  }

  /** The same as certificates, for agents to keep; empty where there are more than MOST_AUTHORITIES. */
  get authorities(): readonly X509Certificate[] {
    return this.#material.authorities;
  }

  /** The authority that verifies the certificate in use; null when it is not known. */
  get verifiedBy(): X509Certificate | null {
    return this.#material.verifiedBy;
  }

  /** When the certificate ends, in milliseconds since 1970. */
  get notAfterMs(): number {
    return this.#material.notAfterMs;
  }

  /** Subscribe to new certificates. Returns an unsubscribe function. */
  onChange(listener: (context: SecureContextOptions) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Show when the certificate ends, and how often it was replaced. */
  measure(metrics: MetricsRegistry): void {
    this.#metrics = metrics;
    this.#expiryGauge(metrics).set(this.#material.notAfterMs / 1000);
  }

  /** The task that looks at the files again and again. */
  get task(): Task {
    const { clock, pollMs = POLL_MS } = this.#options;
    return new Loop({
      name: "tls-reload",
      everyMs: pollMs,
      clock,
      turn: () => this.#look(false),
    });
  }

  /**
   * Look at the files now. What cannot be used is logged and left aside; the certificate in use stays. Never rejects.
   */
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
   * Two files are seldom replaced at the same instant: a look may see the new certificate with the old key. So only
   * what is still there at the next look is worth a line, and one line is enough.
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
      "tls certificate cannot be replaced, the one in use stays",
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
      help: "When the server's TLS certificate in use ends, in seconds since 1970.",
    });
  }

  #countReload(outcome: "replaced" | "refused"): void {
    if (this.#metrics === null) return;
    counter(this.#metrics, {
      name: "rollcall_tls_certificate_reloads_total",
      help: "Times that other contents were found in the files of the server's TLS certificate, by what came of it.",
      labelNames: ["outcome"],
    }).inc({ outcome });
  }
}
