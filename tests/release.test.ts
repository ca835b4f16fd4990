import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { cutChangelog } from "../scripts/release/changelog.ts";
import { setVersion, versionPlaces } from "../scripts/release/versions.ts";
import { workspaceRoot } from "./support/workspace.ts";

const scratch = mkdtempSync(join(tmpdir(), "rollcall-release-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const { version: current } = JSON.parse(readFileSync(join(workspaceRoot, "services/rollcall/package.json"), "utf8"));

describe("versionPlaces()", () => {
  it("should find one version everywhere", () => {
    const places = versionPlaces(workspaceRoot);
    expect(places.filter(({ version }) => version !== current)).toEqual([]);
    expect(new Set(places.map(({ file }) => file)).size).toBe(10);
  });

  it("should find all versions: private packages have none", () => {
    const manifests = ["libs", "services"].flatMap((folder) =>
      readdirSync(join(workspaceRoot, folder)).map((name) => `${folder}/${name}/package.json`),
    );
    const listed = versionPlaces(workspaceRoot).map(({ file }) => file);
    const others = [...manifests, "bench/package.json"].filter((file) => !listed.includes(file));
    const versioned = others.filter((file) => "version" in JSON.parse(readFileSync(join(workspaceRoot, file), "utf8")));
    expect(versioned).toEqual([]);
  });
});

describe("setVersion()", () => {
  it("should change each place, and nothing else", () => {
    const files = [...new Set(versionPlaces(workspaceRoot).map(({ file }) => file))];
    for (const file of files) {
      mkdirSync(dirname(join(scratch, file)), { recursive: true });
      cpSync(join(workspaceRoot, file), join(scratch, file));
    }
    expect(setVersion(scratch, "12.0.0-rc.1")).toEqual(files);
    const places = versionPlaces(workspaceRoot);
    expect(versionPlaces(scratch)).toEqual(places.map((place) => ({ ...place, version: "12.0.0-rc.1" })));
    setVersion(scratch, current);
    for (const file of files)
      expect(readFileSync(join(scratch, file), "utf8")).toBe(readFileSync(join(workspaceRoot, file), "utf8"));
  });

  it.each(["", "1", "v0.1.0", "0.1", "0.1.0 "])("should refuse %j", (version) => {
    expect(() => setVersion(scratch, version)).toThrow(`"${version}" is not a version such as 0.2.0`);
  });
});

describe("cutChangelog()", () => {
  const text = "# Changelog\n\n## 0.2.0 (unreleased)\n\n### Added\n- A thing.\n\n## 0.1.0 - 2026-12-01\n\n- Another.\n";

  it("should date the unreleased version", () => {
    expect(cutChangelog(text, { version: "0.2.0", date: "2027-01-02" })).toBe(
      text.replace("0.2.0 (unreleased)", "0.2.0 - 2027-01-02"),
    );
  });

  it.each([
    ["another version", text, "0.3.0", "the unreleased version in CHANGELOG.md is 0.2.0, not 0.3.0"],
    [
      "a released one",
      text.replace(" (unreleased)", " - 2027-01-01"),
      "0.2.0",
      "CHANGELOG.md has no unreleased version",
    ],
    ["no entry", text.replace("- A thing.\n", ""), "0.2.0", "CHANGELOG.md has no entry for 0.2.0"],
    ["no version", "# Changelog\n", "0.2.0", "CHANGELOG.md has no unreleased version"],
  ])("should refuse %s", (_name, changelog, version, message) => {
    expect(() => cutChangelog(changelog, { version, date: "2027-01-02" })).toThrow(message);
  });

  it("should accept the changelog as it is", () => {
    const changelog = readFileSync(join(workspaceRoot, "CHANGELOG.md"), "utf8");
    expect(cutChangelog(changelog, { version: current, date: "2027-01-02" })).toContain(`## ${current} - 2027-01-02`);
  });
});

describe("make release", () => {
  it.each([
    [[], "name exactly one version"],
    [["0.1.0", "0.2.0"], "name exactly one version"],
    [["0.1.0", "--only", "npm,rubygems"], "no destination rubygems; use npm, pypi, maven, oci"],
  ])("should refuse %j", (words, message) => {
    const { status, stderr } = spawnSync(process.execPath, ["scripts/release/main.mjs", ...words], {
      cwd: workspaceRoot,
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});

describe("the commit hooks", () => {
  const repository = join(scratch, "repository");
  const git = (words: readonly string[], editor = "true") =>
    spawnSync("git", words, {
      cwd: repository,
      encoding: "utf8",
      env: {
        ...process.env,
        GIT_EDITOR: editor,
        ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@example.com" },
        ...{ GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@example.com" },
      },
    });
  execFileSync("git", ["init", "--quiet", repository]);
  git(["config", "core.hooksPath", join(workspaceRoot, ".githooks")]);
  const commit = (...words: string[]) => git(["commit", "--allow-empty", ...words]);

  it.each([
    ["a long subject", ["-m", "x".repeat(73)], "the subject has 73 characters; use at most 72"],
    ["text below the subject", ["-m", "Add a thing\nand more"], "leave the line after the subject empty"],
  ])("should refuse %s", (_name, words, message) => {
    const { status, stderr } = commit(...words);
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it("should accept a subject of 72 characters and a body", () => {
    expect(commit("-m", "x".repeat(72), "-m", "Why.\nChecked: how.").stderr).toBe("");
  });

  it("should offer a template", () => {
    const seen = join(scratch, "seen");
    writeFileSync(join(scratch, "editor.sh"), `cp "$1" ${seen}; echo "Add a thing" >"$1"`);
    expect(git(["commit", "--allow-empty"], `sh ${join(scratch, "editor.sh")}`).status).toBe(0);
    expect(readFileSync(seen, "utf8")).toContain("# Subject: what changes, in the imperative, at most 72 characters.");
  });
});
