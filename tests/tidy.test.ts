import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import {
  crowdedFolders,
  impurities,
  isTest,
  lateNames,
  MAY_DEPEND_ON,
  mutualFolders,
  pathsIn,
  prying,
  reasonsWithoutCode,
  textReaders,
  untidyFiles,
  wideLines,
  widePageLines,
  wrongDependencies,
  wrongImports,
  wrongReferences,
} from "./support/tidy-rules.ts";
import { type Package, readPackages, readSources, referencesOf, workspaceRoot } from "./support/workspace.ts";

const packages = readPackages();
/** The folder of the console's pages. They are a package inside the folder of the service that serves them. */
const PAGES = "services/console/web/src";

/** The files that access private members of a library, and why. */
const PRIES: Readonly<Record<string, string>> = {
  "libs/rpc/src/connections/fair-reading.ts": "no other way stops the reading of an HTTP/2 session's socket",
  "libs/rpc/src/grpc/direct-answer.ts": "without it, each small response takes two packets, and a tenth more CPU",
  "libs/store/src/database/store-client.ts": "pg decides about TLS before a connection chooses its server",
  "services/agent/src/stream/grpc-heartbeat-transport.ts": "grpc-js connects through a tunnel in no other way",
};

/** The files that recognise errors by their text, and why. */
const READS_TEXTS: Readonly<Record<string, string>> = {
  "libs/errors/src/error-mapping.ts": "Connect reports mistakes of callers with codes of defects",
  "libs/store/src/database/store-error.ts": "pg and PgBouncer report several causes without a code, or with one code",
  "services/cli/src/client/describe-failure.ts": "Connect reports any other HTTP response with a code for its status",
  "services/cli/src/run-cli.ts": "only the message has the name of an unknown command, which its code reports",
};

/** The libraries that convert refusals to statuses or serve calls, and the one that helps their tests. */
const SPEAKS_CONNECT: readonly string[] = ["errors", "rpc", "testkit"];

describe("the workspace", () => {
  it("should have dependencies in one direction only", () => {
    expect(packages.flatMap(wrongDependencies)).toEqual([]);
  });

  it("should import as ARCHITECTURE.md says", () => {
    const page = readFileSync(join(workspaceRoot, "ARCHITECTURE.md"), "utf8");
    const [, section = ""] = /## Imports point one way\n([\s\S]*?)\n## /.exec(page) ?? [];
    const rows = [...section.matchAll(/^\| ([a-z-]+) \| (.*) \|$/gm)].filter(([, name]) => name !== "package");
    const shown = rows.map(([, name, imports = ""]) => [name, imports === "-" ? [] : imports.split(", ")]);
    const held = Object.entries(MAY_DEPEND_ON).map(([name, imports]) => [name, [...imports].sort()] as const);
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(held));
  });

  it("should import only what is declared, and nothing across folders", () => {
    expect(packages.flatMap(wrongImports)).toEqual([]);
  });

  it("should refer in each project to its workspace dependencies and to nothing else", () => {
    expect(packages.flatMap(wrongReferences)).toEqual([]);
  });

  it("should build every package from the root project", () => {
    const folders = packages.map(({ folder }) => folder);
    expect([...referencesOf("tsconfig.json")].sort()).toEqual([...folders].sort());
  });

  it("should have at most two pairs of folders that import each other in a package", () => {
    const mutual = packages.map((one) => [one.name, mutualFolders(one)] as const);
    expect(mutual.filter(([, pairs]) => pairs.length > 2)).toEqual([]);
  });

  it("should know Connect only where calls become statuses", () => {
    const others = packages.filter(({ folder, name }) => folder.startsWith("libs/") && !SPEAKS_CONNECT.includes(name));
    const sources = others.flatMap(({ files }) => files).filter((file) => !isTest(file));
    expect(sources.filter(({ text }) => text.includes("@connectrpc/")).map(({ path }) => path)).toEqual([]);
  });

  it("should access private members of libraries only where no public way is as good", () => {
    expect(prying(productFiles()).toSorted()).toEqual(Object.keys(PRIES).toSorted());
    for (const text of ["socket._handle.reading", 'Reflect.get(socket, "_handle")', "override _isSecure()"]) {
      expect(prying([{ path: "libs/rpc/src/a.ts", text }])).toHaveLength(1);
    }
    const fine = ["override _transform(bytes) {}", "class A { #b = this.#c; }", "// See socket._handle."];
    expect(prying(fine.map((text) => ({ path: "libs/rpc/src/a.ts", text })))).toEqual([]);
  });

  it("should recognise errors by their codes, and by their text only if they have none", () => {
    expect(textReaders(productFiles()).toSorted()).toEqual(Object.keys(READS_TEXTS).toSorted());
    const text = "if (/^timeout/.test(error.message)) return;";
    expect(textReaders([{ path: "libs/rpc/src/a.ts", text }])).toHaveLength(1);
  });

  it("should use neither clocks nor randomness in the domain", () => {
    expect(packages.filter(({ name }) => name === "domain").flatMap(impurities)).toEqual([]);
  });

  it("should not use a URL's pathname as a path, because it encodes spaces and letters that are not ASCII", () => {
    const sources = ["libs", "services", "scripts", "simulation", "bench", "tests"].flatMap(readSources);
    const raw = sources.filter(({ text }) => /new URL\([^)]*import\.meta\.url\)\.pathname/.test(text));
    expect(raw.map(({ path }) => path)).toEqual([]);
  });

  it("should use the default export of packages that are loaded dynamically", () => {
    expect(packages.flatMap(lateNames)).toEqual([]);
    const file = { path: "services/cli/src/a.ts", text: 'const { parse } = await import("yaml");' };
    expect(lateNames({ ...tidy("cli"), files: [file] })).toHaveLength(1);
  });

  it("should have short files with names in kebab-case", () => {
    const files = [...packages.flatMap((one) => one.files), ...readSources("tests"), ...readSources(PAGES)];
    expect(untidyFiles(files)).toEqual([]);
    expect(crowdedFolders(files)).toEqual([]);
    expect(wideLines(files)).toEqual([]);
  });

  it("should skip tests only with needs(), which names what is missing", () => {
    const files = [...packages.flatMap((one) => one.files), ...readSources("tests"), ...readSources("bench/src")];
    const skipping = files.filter(({ text }) => /\b(?:it|describe)\.skip\b/.test(text)).map(({ path }) => path);
    expect(skipping).toEqual(["libs/testkit/src/jest/needs.ts"]);
  });

  it("should name only files and folders that exist in its documents", () => {
    const missing = ["ARCHITECTURE.md", "CONTRIBUTING.md", ...pagesBelow("docs")].flatMap((page) =>
      pathsIn(readFileSync(join(workspaceRoot, page), "utf8"))
        // Skip folders in decisions, because decisions can name folders that existed when they were made.
        .filter((path) => !page.startsWith("docs/decisions/") || path.endsWith(".ts"))
        .filter((path) => !existsSync(join(workspaceRoot, path)))
        .map((path) => `${page}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it("should end the lines of its pages at 120 columns", () => {
    const pages = ["", "docs"].flatMap((folder) =>
      readdirSync(join(workspaceRoot, folder)).flatMap((name) => (name.endsWith(".md") ? [join(folder, name)] : [])),
    );
    const wide = pages.flatMap((path) =>
      widePageLines({ path, text: readFileSync(join(workspaceRoot, path), "utf8") }),
    );
    expect(wide).toEqual([]);
  });

  it("should have a row of ARCHITECTURE.md for every package and folder", () => {
    const page = readFileSync(join(workspaceRoot, "ARCHITECTURE.md"), "utf8");
    const [, section = ""] = /## Parts\n([\s\S]*?)\n## /.exec(page) ?? [];
    const rows = [...section.matchAll(/^\| `([a-z_/-]+?)\/?` \|/gm)].map(([, folder]) => folder);
    const others = ["proto", "third_party", "tests", "bin", "mutants", "scripts", "docs", "deploy", "sdk"];
    expect(rows.sort()).toEqual([...packages.map(({ folder }) => folder), ...others].sort());
  });

  it("should keep ARCHITECTURE.md a map, with details in docs/internals", () => {
    const words = readFileSync(join(workspaceRoot, "ARCHITECTURE.md"), "utf8").split(/\s+/);
    expect(words.length).toBeLessThanOrEqual(1_800);
  });

  it("should number its decisions without gaps, and list each once by topic", () => {
    const folder = join(workspaceRoot, "docs/decisions");
    const pages = readdirSync(folder).filter((name) => name !== "README.md");
    expect(pages.map((name) => Number(name.slice(0, 4)))).toEqual(pages.map((_, index) => index + 1));
    const index = readFileSync(join(folder, "README.md"), "utf8");
    const listed = [...index.matchAll(/^\| \[\d{4}\]\((\S+?)\) \|/gm)].map(([, name]) => name);
    expect(listed.sort()).toEqual(pages);
  });

  it("should name the successor of each decision that no longer applies, and what each new one replaces", () => {
    const folder = join(workspaceRoot, "docs/decisions");
    const links = (pattern: RegExp) =>
      readdirSync(folder).flatMap((name) => {
        const [, other] = pattern.exec(readFileSync(join(folder, name), "utf8")) ?? [];
        return other === undefined ? [] : [{ name, other }];
      });
    const replacing = links(/^Replaces \[\d{4}\]\((\S+?)\)/m).map(({ name, other }) => `${other} -> ${name}`);
    const superseded = links(/^Superseded by \[\d{4}\]\((\S+?)\)/m).map(({ name, other }) => `${name} -> ${other}`);
    expect(superseded.toSorted()).toEqual(replacing.toSorted());
    expect(superseded).not.toEqual([]);
  });

  it("should give every error reason its code", () => {
    const proto = "proto/rollcall/node/v1/error_reason.proto";
    expect(reasonsWithoutCode(readFileSync(join(workspaceRoot, proto), "utf8"))).toEqual([]);
  });
});

describe("wrongDependencies()", () => {
  it("should name a release that contains the testkit, and a service that contains a service", () => {
    const admin = { ...tidy("admin"), dependencies: ["registry", "store", "testkit"] };
    expect(wrongDependencies(admin)).toEqual([
      "services/admin: must not depend on registry",
      "services/admin: must not depend on testkit",
    ]);
  });

  it("should name a package that is not in the table", () => {
    expect(wrongDependencies(tidy("stray"))).toHaveLength(1);
  });
});

describe("wrongReferences()", () => {
  it("should name missing and superfluous references", () => {
    const admin = { ...tidy("admin"), dependencies: ["api"], references: ["store"] };
    expect(wrongReferences(admin)).toHaveLength(2);
  });
});

describe("wrongImports()", () => {
  const file = (path: string, text: string): Package => ({
    ...tidy("admin"),
    dependencies: ["store"],
    devDependencies: ["testkit"],
    files: [{ path: `services/admin/src/${path}`, text }],
  });

  it.each([
    ["app.ts", 'import { a } from "@rollcall/testkit";'],
    ["app.ts", 'const a = await import("@rollcall/registry");'],
    ["rpc/a.ts", 'export { a } from "../../../registry/src/a.ts";'],
    ["rpc/a.test.ts", 'export { a } from "../../../registry/src/a.ts";'],
    ["rpc/a.ts", 'import { a } from "../../test/a.ts";'],
    ["app.ts", 'import type {\n  A,\n} from "../../../libs/store/src/a.ts";'],
  ])("should refuse in %s: %s", (path, text) => {
    expect(wrongImports(file(path, text))).toHaveLength(1);
  });

  it.each([
    ["app.test.ts", 'import { a } from "@rollcall/testkit";'],
    ["app.ts", 'import { a } from "@rollcall/store";\n// from "@rollcall/registry"'],
    ["rpc/a.ts", 'import { a } from "../app.ts";'],
    ["rpc/a.test.ts", 'import { a } from "../../test/a.ts";'],
  ])("should allow in %s: %s", (path, text) => {
    expect(wrongImports(file(path, text))).toEqual([]);
  });
});

describe("impurities()", () => {
  it("should name clocks and randomness, but not words in comments", () => {
    const text = "/** Date */\nconst a = Date.now(); // performance\nconst b = Math.random();\n";
    const domain = { ...tidy("domain"), files: [{ path: "libs/domain/src/a.ts", text }] };
    expect(impurities(domain)).toHaveLength(2);
  });
});

describe("wideLines()", () => {
  const wide = "x ".repeat(60);

  it("should name lines over 120 columns, but no names of tests, regular expressions, migrations or recordings", () => {
    const at = (path: string, text: string) => wideLines([{ path, text }]);
    expect(at("libs/domain/src/a.ts", `\n// ${wide}`)).toEqual([
      "libs/domain/src/a.ts:2: has 123 columns; 120 at most",
    ]);
    expect(at("libs/domain/src/a.ts", `const a = "${wide}";`)).toHaveLength(1);
    expect(at("libs/domain/src/a.test.ts", `  it("${wide}", () => {\n  ])("${wide}", () => {\n  /${wide}/,`)).toEqual(
      [],
    );
    expect(at("libs/store/src/database/migrations/0001-a.ts", wide.repeat(2))).toEqual([]);
  });
});

describe("widePageLines()", () => {
  const wide = "x ".repeat(61);

  it("should name lines of prose over 120 columns, but no tables, code and long words", () => {
    const at = (text: string) => widePageLines({ path: "README.md", text });
    expect(at(`# A\n\n${wide}`)).toEqual(["README.md:3: has 122 columns; 120 at most"]);
    expect(at(`| ${wide} |\n\`\`\`\n${wide}\n\`\`\`\n- ${"x".repeat(130)}`)).toEqual([]);
  });
});

describe("crowdedFolders()", () => {
  it("should count the files of each folder, without tests and subfolders", () => {
    const filesOf = (folder: string, count: number) =>
      Array.from({ length: count }, (_, at) => ({ path: `${folder}/file-${at}.ts`, text: "" }));
    const test = { path: "libs/store/src/nodes/one.test.ts", text: "" };
    const files = [...filesOf("libs/store/src/nodes", 20), ...filesOf("libs/store/src/nodes/deep", 3), test];
    expect(crowdedFolders(files)).toEqual([]);
    expect(crowdedFolders([...files, ...filesOf("libs/store/src/log", 21)])).toEqual([
      "libs/store/src/log: has 21 files other than tests; 20 at most",
    ]);
  });
});

describe("mutualFolders()", () => {
  it("should find folders that import each other, but not their tests", () => {
    const file = (path: string, specifier: string) => ({
      path: `libs/x/src/${path}`,
      text: `import "${specifier}";\n`,
    });
    const files = [
      file("a/one.ts", "../b/two.ts"),
      file("b/two.ts", "../c/three.ts"),
      file("b/deep/four.ts", "../../a/one.ts"),
      file("c/three.test.ts", "../b/two.ts"),
      file("root.ts", "./a/one.ts"),
      file("a/five.ts", "../root.ts"),
    ];
    expect(mutualFolders({ ...tidy("x"), folder: "libs/x", files })).toEqual(["a <> b"]);
  });
});

describe("pathsIn()", () => {
  it("should find files and folders of the tree, but no patterns and no parts of a longer path", () => {
    const text =
      "`libs/domain`, `services/health/src/moves/` and tests/tidy.test.ts; not `dist/libs/a` or `libs/*/src`";
    expect(pathsIn(text)).toEqual(["libs/domain", "services/health/src/moves/", "tests/tidy.test.ts"]);
  });
});

describe("untidyFiles()", () => {
  it("should name long files and other names", () => {
    const files = [
      { path: "libs/domain/src/nodeId.ts", text: "" },
      { path: "libs/domain/src/node-id.test.ts", text: "\n".repeat(400) },
      { path: "libs/domain/src/long.ts", text: "\n".repeat(401) },
    ];
    expect(untidyFiles(files)).toEqual([
      "libs/domain/src/nodeId.ts: nodeId.ts is not kebab-case",
      "libs/domain/src/long.ts: has 401 lines; 400 at most",
    ]);
  });
});

describe("reasonsWithoutCode()", () => {
  it("should name a value whose comment has no code, or an unknown one", () => {
    const proto = [
      "enum ErrorReason {",
      "  // Never sent.",
      "  ERROR_REASON_UNSPECIFIED = 0;",
      "  // [NOT_FOUND] Good.",
      "  ERROR_REASON_GOOD = 1;",
      "  // Bad.",
      "  ERROR_REASON_BARE = 2;",
      "  // [MISSING] Worse.",
      "  ERROR_REASON_WORSE = 3;",
      "}",
    ].join("\n");
    expect(reasonsWithoutCode(proto).map((line) => line.split(":")[0])).toEqual([
      "ERROR_REASON_BARE",
      "ERROR_REASON_WORSE",
    ]);
  });
});

/** The files of what is released. */
function productFiles() {
  const served = packages.filter(({ name }) => !["simulation", "bench", "testkit"].includes(name));
  return [...served.flatMap(({ files }) => files), ...readSources(PAGES)];
}

/** Find all pages in a folder and its subfolders. */
function pagesBelow(folder: string): readonly string[] {
  return readdirSync(join(workspaceRoot, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && !name.includes("node_modules"))
    .map((name) => join(folder, name));
}

function tidy(name: string): Package {
  const none = { dependencies: [], devDependencies: [], references: [], files: [] };
  return { name, folder: `services/${name}`, ...none };
}
