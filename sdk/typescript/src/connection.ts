// The connection to one service, in Node.js.
import { readFile, stat } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { fetchAuthority } from "./authority.ts";
import type { Path } from "./calls.ts";
import { MOST_MESSAGE_BYTES } from "./client.ts";
import { codeOf } from "./contexts.ts";
import { ConfigurationError } from "./errors.ts";
import type { ServiceTarget } from "./target.ts";

// Detect a connection that drops packets while a stream waits.
const PINGS = { pingIntervalMs: 20_000, pingTimeoutMs: 10_000 };

/**
 * The connection to one service. A path can die silently, so after a call without a response, new calls use a new
 * path. The old path is closed when its last call has ended, so that one slow call does not break the others. New
 * calls also use a new path after the TLS files were replaced.
 */
export class Connection {
  readonly #target: ServiceTarget;
  /** The current path, and earlier paths that still have calls. */
  readonly #open = new Set<OpenPath>();
  #current: OpenPath | null = null;
  #tls: Promise<TlsOptions> | null = null;
  /** What stampOf() returned before the TLS files were read. */
  #stamp: string | null = null;
  #isClosed = false;

  constructor(target: ServiceTarget) {
    this.#target = target;
  }

  /**
   * Acquire the path for one call. Rejects with ConfigurationError if the TLS files are unusable. In that case, the
   * next call reads them again.
   */
  async acquire(): Promise<Path> {
    this.#throwClosed();
    const tls = await this.#readFiles();
    this.#throwClosed();
    const path = this.#current ?? this.#dial(tls);
    path.calls += 1;
    return {
      transport: path.transport,
      replace: () => {
        if (path === this.#current) this.#current = null;
      },
      release: () => {
        path.calls -= 1;
        if (path !== this.#current && path.calls === 0 && this.#open.delete(path)) path.session.end();
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const { session } of this.#open) session.end();
    this.#open.clear();
  }

  async #readFiles(): Promise<TlsOptions> {
    const stamp = await stampOf(filesOf(this.#target));
    const former = this.#tls;
    if (former !== null && stamp === this.#stamp) return former;
    this.#stamp = stamp;
    this.#tls = tlsOptions(this.#target).then(
      (read) => {
        this.#leave();
        return read;
      },
      (error: unknown) => {
        // The new files may be half written, so keep the previous content until they can be read.
        this.#stamp = null;
        this.#tls = former;
        if (former === null) throw error;
        return former;
      },
    );
    return this.#tls;
  }

  /** Use a new path from the next call on. */
  #leave(): void {
    const path = this.#current;
    this.#current = null;
    if (path !== null && path.calls === 0 && this.#open.delete(path)) path.session.end();
  }

  #dial(tls: TlsOptions): OpenPath {
    const { baseUrl } = this.#target.address;
    const session = new Session(baseUrl, PINGS, tls);
    const transport = createGrpcTransport({ baseUrl, sessionManager: session, readMaxBytes: MOST_MESSAGE_BYTES });
    this.#current = { session, transport, calls: 0 };
    this.#open.add(this.#current);
    return this.#current;
  }

  #throwClosed(): void {
    if (this.#isClosed) throw new ConfigurationError("the client is closed");
  }
}

interface OpenPath {
  readonly session: Session;
  readonly transport: Transport;
  calls: number;
}

/** A session manager that never reconnects after its end. */
class Session extends Http2SessionManager {
  #isEnded = false;

  override async request(...words: Parameters<Http2SessionManager["request"]>) {
    const stream = await super.request(...words);
    // A request that waited for a ping reconnects if its connection was aborted in the meantime. Abort it again.
    if (this.#isEnded) this.abort();
    return stream;
  }

  end(): void {
    this.#isEnded = true;
    this.abort();
  }
}

type TlsOptions = Awaited<ReturnType<typeof tlsOptions>>;

/** The TLS files to check for changes. An authority that was fetched by its fingerprint does not change. */
function filesOf({ address, trust }: ServiceTarget): readonly string[] {
  const { caFile, caFingerprint, clientCertificate } = trust;
  if (!address.isTls || caFingerprint !== null) return [];
  return [caFile, clientCertificate?.certificateFile, clientCertificate?.keyFile].filter((it) => it != null);
}

/** Return a string that changes when any of the files changes. */
async function stampOf(files: readonly string[]): Promise<string> {
  const found = await Promise.all(files.map((file) => stat(file, { bigint: true }).catch(() => null)));
  return found.map((it) => `${it?.mtimeNs} ${it?.size} ${it?.ino}`).join();
}

async function tlsOptions({ address, trust }: ServiceTarget) {
  if (!address.isTls) return {};
  const { caFile, caFingerprint, serverName, clientCertificate } = trust;
  const read = (file: string) =>
    readFile(file).catch((cause: unknown) => {
      throw new ConfigurationError(`cannot read ${file}: ${codeOf(cause)}`, { cause });
    });
  const ca =
    caFingerprint === null ? caFile && (await read(caFile)) : await fetchAuthority(address, serverName, caFingerprint);
  if (caFingerprint === null && ca && !String(ca).includes("-----END CERTIFICATE-----")) {
    throw new ConfigurationError(`${caFile} contains no certificate`);
  }
  const pair =
    clientCertificate === null
      ? {}
      : { cert: await read(clientCertificate.certificateFile), key: await read(clientCertificate.keyFile) };
  try {
    // This throws if the certificate and the key do not match, for example while the pair is half replaced.
    createSecureContext(pair);
  } catch (cause) {
    const { certificateFile, keyFile } = clientCertificate ?? {};
    throw new ConfigurationError(`${certificateFile} and ${keyFile} are not a certificate and its key`, { cause });
  }
  return { ...(ca ? { ca } : {}), ...(serverName === null ? {} : { servername: serverName }), ...pair };
}
