import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ManualClock } from "@rollcall/testkit/time";
import { AuthorityFile } from "./authority-file.ts";

let authority: TestAuthority;
beforeEach(() => {
  authority = new TestAuthority();
});
afterEach(() => rmSync(authority.dir, { recursive: true, force: true }));

const pemOf = ({ caFile }: TestAuthority) => readFileSync(caFile, "utf8");

async function open(content: string) {
  const file = join(authority.dir, "announced.pem");
  writeFileSync(file, content);
  const { log, lines } = captureLog();
  const source = await AuthorityFile.open({ file, log, clock: new ManualClock({}) });
  return { file, source, lines };
}

describe("AuthorityFile", () => {
  it("should follow its file and keep its content while the file is invalid", async () => {
    const { file, source, lines } = await open(pemOf(authority));
    const first = source.authorities;
    await source.reload();
    expect(source.authorities).toBe(first);
    for (const useless of ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]) {
      writeFileSync(file, useless);
      await source.reload();
      await source.reload();
      expect(source.authorities).toBe(first);
    }
    expect(lines.filter(({ level }) => level === "error")).toHaveLength(2);
    writeFileSync(file, `${pemOf(authority)}${pemOf(new TestAuthority(authority.dir))}`);
    await source.reload();
    expect(source.authorities).toHaveLength(2);
  });

  it("should hold only roots, and refuse a file without one", async () => {
    const other = new TestAuthority(mkdtempSync(join(authority.dir, "other-")));
    const crossSigned = authority.crossSign(other);
    await expect(open(crossSigned)).rejects.toThrow(/announced\.pem: contains only intermediate or cross-signed/);
    const { source } = await open(`${crossSigned}${pemOf(authority)}`);
    expect(source.authorities.map(String)).toEqual([pemOf(authority)]);
  });

  it("should refuse more than agents keep", async () => {
    await expect(open(pemOf(authority).repeat(17))).rejects.toThrow(/contains 17 certificates.*at most 16/);
    expect((await open(pemOf(authority).repeat(16))).source.authorities).toHaveLength(16);
  });
});
