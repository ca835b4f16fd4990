// Where the calls to one service go, in Node.js.
import { readFile } from "node:fs/promises";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { fetchAuthority } from "./authority.ts";
import type { Path } from "./calls.ts";
import { MOST_MESSAGE_BYTES } from "./client.ts";
import { codeOf } from "./contexts.ts";
import { ConfigurationError } from "./errors.ts";
import type { ServiceTarget } from "./target.ts";

// A path that drops packets is noticed while a stream waits.
const PINGS = { pingIntervalMs: 20_000, pingTimeoutMs: 10_000 };

/**
 * The connection to one service. A path can die silently: calls after one without an answer use a new path. The old
 * path is closed when its last call has ended, because a call that merely takes long does not end the others.
 */
export class Connection {
  readonly #target: ServiceTarget;
  /** The current path, and those before it that still have calls. */
  readonly #open = new Set<OpenPath>();
  #current: OpenPath | null = null;
  #tls: Promise<TlsOptions> | null = null;
  #isClosed = false;

  constructor(target: ServiceTarget) {
    this.#target = target;
  }

  /** The path for one call. Rejects with ConfigurationError; then the next call reads the files again. */
  async acquire(): Promise<Path> {
    this.#throwClosed();
    this.#tls ??= tlsOptions(this.#target).catch((error: unknown) => {
      this.#tls = null;
      throw error;
    });
    const tls = await this.#tls;
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

/** A session manager that stays closed once it has been ended. */
class Session extends Http2SessionManager {
  #isEnded = false;

  override async request(...words: Parameters<Http2SessionManager["request"]>) {
    const stream = await super.request(...words);
    // A request that waited for a ping connects again when its connection is aborted meanwhile.
    if (this.#isEnded) this.abort();
    return stream;
  }

  end(): void {
    this.#isEnded = true;
    this.abort();
  }
}

type TlsOptions = Awaited<ReturnType<typeof tlsOptions>>;

async function tlsOptions({ address, trust }: ServiceTarget) {
  if (!address.isTls) return {};
  const { caFile, caFingerprint, serverName, clientCertificate } = trust;
  const read = (file: string) =>
    readFile(file).catch((cause: unknown) => {
      throw new ConfigurationError(`cannot read ${file}: ${codeOf(cause)}`, { cause });
    });
  const ca =
    caFingerprint === null ? caFile && (await read(caFile)) : await fetchAuthority(address, serverName, caFingerprint);
  return {
    ...(ca ? { ca } : {}),
    ...(serverName === null ? {} : { servername: serverName }),
    ...(clientCertificate === null
      ? {}
      : { cert: await read(clientCertificate.certificateFile), key: await read(clientCertificate.keyFile) }),
  };
}
