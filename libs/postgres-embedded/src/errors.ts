/**
 * What a failure means for who tries again: nothing changes by waiting, it may pass by itself, or another process
 * already does the work.
 */
export type EmbeddedPostgresFailure = "permanent" | "passing" | "supervised-elsewhere";

/** Why the packaged Postgres could not be had; the message says what to do about it. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
  readonly failure: EmbeddedPostgresFailure;

  constructor(message: string, options: { readonly cause?: unknown; readonly failure?: EmbeddedPostgresFailure } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.failure = options.failure ?? "permanent";
  }
}
