/**
 * Whether a retry can help: "permanent" means never, "passing" means perhaps, and "supervised-elsewhere" means that
 * another process already supervises the server.
 */
export type EmbeddedPostgresFailure = "permanent" | "passing" | "supervised-elsewhere";

/** Why the packaged Postgres is not available. The message says what to do. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
  readonly failure: EmbeddedPostgresFailure;

  constructor(message: string, options: { readonly cause?: unknown; readonly failure?: EmbeddedPostgresFailure } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.failure = options.failure ?? "permanent";
  }
}
