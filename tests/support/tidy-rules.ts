import { dirname, join } from "node:path";
import type { Package, SourceFile } from "./workspace.ts";

/**
 * The packages that a release of each package can contain. Imports go in only one direction. ARCHITECTURE.md shows
 * the same table.
 */
export const MAY_DEPEND_ON: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  api: [],
  errors: ["api"],
  process: ["errors"],
  config: [],
  identity: ["config", "errors", "process"],
  rpc: ["api", "errors", "identity", "process", "wire"],
  "postgres-embedded": ["process"],
  store: ["domain", "errors", "identity", "process"],
  wire: ["api", "config", "domain"],
  operations: ["api", "domain", "errors", "process", "rpc", "store", "wire"],
  events: ["api", "config", "process"],
  testkit: ["api", "domain", "errors", "identity", "postgres-embedded", "process", "rpc", "store", "wire"],
  registry: ["api", "config", "domain", "errors", "events", "identity", "process", "rpc", "store", "wire"],
  health: ["api", "config", "domain", "errors", "identity", "process", "rpc", "store", "wire"],
  admin: ["api", "config", "domain", "errors", "events", "identity", "operations", "process", "rpc", "store", "wire"],
  scheduler: ["api", "domain", "errors", "operations", "process", "rpc", "store", "wire"],
  console: ["api", "config", "domain", "errors", "identity", "operations", "process", "rpc", "store"],
  agent: ["api", "config", "domain", "errors", "identity", "process", "rpc", "wire"],
  keeper: ["api", "process", "wire"],
  cli: ["api", "config", "domain", "errors", "identity", "process", "rpc", "wire"],
  rollcall: [
    ...["api", "config", "domain", "errors", "events", "identity", "postgres-embedded", "process"],
    ...["rpc", "store", "wire", "registry", "health", "admin", "scheduler", "console", "agent", "keeper", "cli"],
  ],
  // It runs the production code of these services.
  simulation: [
    ...["api", "domain", "errors", "process", "store", "wire"],
    ...["agent", "health", "keeper", "scheduler"],
  ],
  bench: [
    ...["api", "config", "domain", "errors", "events", "identity", "postgres-embedded", "process"],
    ...["rpc", "store", "testkit", "wire", "agent", "keeper", "scheduler", "simulation"],
  ],
};

const MAX_LINES = 400;
const MAX_FILES = 20;
const MAX_COLUMNS = 120;
const KEBAB_CASE = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/;
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g;
const GRPC_CODES = new Set([
  ...["CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"],
  ...["ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"],
  ...["ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"],
  "UNAUTHENTICATED",
]);

/** Find dependencies in the wrong direction, in releases and in tests. Tests can additionally use the testkit. */
export function wrongDependencies(one: Package): readonly string[] {
  const allowed = MAY_DEPEND_ON[one.name];
  if (allowed === undefined) return [`${one.folder}: has no row in the table of imports`];
  const inRelease = one.dependencies.filter((name) => !allowed.includes(name));
  const inTests = one.devDependencies.filter((name) => name !== "testkit");
  return [
    ...inRelease.map((name) => `${one.folder}: must not depend on ${name}`),
    ...inTests.map((name) => `${one.folder}: tests may additionally depend only on the testkit, not on ${name}`),
  ];
}

/** Find references of a project that differ from its workspace dependencies. */
export function wrongReferences(one: Package): readonly string[] {
  return [
    ...one.dependencies
      .filter((name) => !one.references.includes(name))
      .map((name) => `${one.folder}/tsconfig.json: lacks a reference to ${name}`),
    ...one.references
      .filter((name) => !one.dependencies.includes(name))
      .map((name) => `${one.folder}/tsconfig.json: refers to ${name}, which is no dependency`),
  ];
}

/** Find imports without a dependency, or into another package's folder. */
export function wrongImports(one: Package): readonly string[] {
  return one.files.flatMap((file) => {
    const allowed = isTest(file) ? [...one.dependencies, ...one.devDependencies] : one.dependencies;
    // Allow tests to import helpers from anywhere in their package's folder. Released code must stay in src.
    const home = isTest(file) ? one.folder : `${one.folder}/src`;
    const depth = file.path.split("/").length - home.split("/").length - 1;
    return importsOf(file).flatMap((specifier) => {
      const [, name] = /^@rollcall\/([^/]+)/.exec(specifier) ?? [];
      if (name !== undefined && !allowed.includes(name)) {
        return [`${file.path}: imports ${specifier}, which is no dependency here`];
      }
      const climbs = specifier.split("/").filter((part) => part === "..").length;
      return climbs > depth ? [`${file.path}: reaches too far with ${specifier}`] : [];
    });
  });
}

/**
 * Find named imports from a package that is loaded dynamically. In the bundle, such a package in CommonJS has only a
 * default export.
 */
export function lateNames(one: Package): readonly string[] {
  return one.files
    .filter((file) => !isTest(file))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\{([^{}]*)\} = await import\("(?![.@]|node:)([^"]+)"\)/g)]
        .filter(([, names = ""]) => !/^\s*default: \w+,?\s*$/.test(names))
        .map(
          ([, , specifier]) =>
            `${path}: imports names from ${specifier}, which is loaded dynamically: import its default`,
        ),
    );
}

/** Find uses of clocks and randomness in the domain, which must receive both as values. */
export function impurities(one: Package): readonly string[] {
  return one.files
    .filter((file) => !isTest(file))
    .flatMap((file) =>
      [...withoutComments(file.text).matchAll(/\bMath\.random\b|\bDate\b|\bperformance\b/g)].map(
        ([word]) => `${file.path}: uses ${word}`,
      ),
    );
}

/** Find names that are not in kebab case, and files that are too long. */
export function untidyFiles(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap((file) => {
    const path = file.path.split("/").slice(/^(bench|simulation)\//.test(file.path) ? 1 : 2);
    const lines = file.text.split("\n").length - 1;
    return [
      ...path.filter((part) => !KEBAB_CASE.test(part)).map((part) => `${file.path}: ${part} is not kebab-case`),
      // Skip the list of a package's exports, because it cannot be split.
      ...(lines > MAX_LINES && !file.path.endsWith("/src/index.ts")
        ? [`${file.path}: has ${lines} lines; ${MAX_LINES} at most`]
        : []),
    ];
  });
}

/**
 * Find source lines that are too wide, because the formatter ignores strings and comments. Skips names of tests and
 * regular expressions, which cannot be wrapped, migrations, which never change, and recordings, which are kept as
 * printed.
 */
export function wideLines(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ path }) => !/\/(gen|migrations|recordings)\//.test(path))
    .flatMap(({ path, text }) => tooWide(path, text, /^\s*((it|describe)\(|\](\s*as const)?\)\()"|^\s*\/[^/*]/));
}

/** Find lines of a page that are too wide, except tables, code and lines without a space to wrap at. */
export function widePageLines({ path, text }: SourceFile): readonly string[] {
  const prose = text.replace(/^ *```[\s\S]*?^ *```/gm, (code) => code.replace(/.*/g, ""));
  return tooWide(path, prose, /^\||^\s*(- |\d+\. )?\S+$/);
}

function tooWide(path: string, text: string, except: RegExp): readonly string[] {
  return text.split("\n").flatMap((line, at) => {
    if (line.length <= MAX_COLUMNS || except.test(line)) return [];
    return [`${path}:${at + 1}: has ${line.length} columns; ${MAX_COLUMNS} at most`];
  });
}

/** Find folders with too many files, not counting tests. */
export function crowdedFolders(files: readonly SourceFile[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { path } of files) {
    const folder = path.slice(0, path.lastIndexOf("/"));
    // Skip migrations, because they form a sequence and there can be any number of them.
    if (path.endsWith(".test.ts") || folder.endsWith("/migrations")) continue;
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > MAX_FILES)
    .map(([folder, count]) => `${folder}: has ${count} files other than tests; ${MAX_FILES} at most`);
}

/** Find the files and folders of the repository that a page names. */
export function pathsIn(page: string): readonly string[] {
  const folders = "baseline|bench|bin|deploy|docs|libs|mutants|proto|scripts|services|tests|third_party";
  const path = new RegExp(`(?<![\\w/.-])(?:${folders})/[\\w./-]*(?<![.-])(?![\\w*<{/-])`, "g");
  return [...page.matchAll(path)].map(([named]) => named);
}

/** Find values of the ErrorReason enum whose comment does not begin with their gRPC code, like "[NOT_FOUND] ...". */
export function reasonsWithoutCode(proto: string): readonly string[] {
  const body = /enum ErrorReason \{([\s\S]*?)\n\}/.exec(proto)?.[1] ?? "";
  return [...body.matchAll(/((?:^\s*\/\/.*\n)*)^\s*(ERROR_REASON_\w+) = (\d+)/gm)]
    .filter(([, , , number]) => number !== "0")
    .filter(([, comment = ""]) => !GRPC_CODES.has(/^\s*\/\/ \[(\w+)\]/.exec(comment)?.[1] ?? ""))
    .map(([, , name]) => `${name}: its comment does not begin with a code`);
}

/**
 * Find pairs of folders in `src` whose files import each other, as "a <> b". Files next to `src/index.ts` do not count.
 */
export function mutualFolders({ folder, files }: Package): readonly string[] {
  const root = `${folder}/src/`;
  const folderIn = (path: string) =>
    path.startsWith(root) ? path.slice(root.length).split("/").slice(0, -1)[0] : undefined;
  const edges = new Set<string>();
  for (const file of files.filter((it) => !isTest(it))) {
    const from = folderIn(file.path);
    for (const specifier of importsOf(file).filter((it) => it.startsWith("."))) {
      const to = folderIn(join(dirname(file.path), specifier));
      if (from !== undefined && to !== undefined && from !== to) edges.add(`${from} <> ${to}`);
    }
  }
  return [...edges].filter((edge) => {
    const [a = "", b = ""] = edge.split(" <> ");
    return a < b && edges.has(`${b} <> ${a}`);
  });
}

function importsOf(file: SourceFile): readonly string[] {
  return [...withoutComments(file.text).matchAll(IMPORT)].map(([, specifier = ""]) => specifier);
}

/** Whether a file is a test, or a helper in a folder `testing` or in `test` next to src. */
export function isTest(file: SourceFile): boolean {
  const folders = file.path.split("/").slice(0, -1);
  return file.path.endsWith(".test.ts") || folders.includes("test") || folders.includes("testing");
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$/gm, "$1");
}

/** Ways to reach private members of a library: names that begin with an underscore, and symbols by description. */
const PRIVATE_MEMBERS = [
  /\w\)?\??\._[a-z]/i,
  /\[["'`]_\w+["'`]\]/,
  /\bReflect\.\w+\([^"'`]*["'`]_/,
  /getOwnPropertySymbols/,
  // Allow the methods with an underscore that Node.js documents for subclasses of streams.
  /\boverride _(?!(?:transform|flush|read|write|writev|final|construct|destroy)\b)/,
  /\bas (?:unknown as )?\w*Internals\b/,
];

/** Ways to decide by the text of an error. */
const TEXTS_OF_ERRORS = [
  /\.(?:test|exec)\((?:\w+\.)*(?:message|rawMessage|details)\)/i,
  /\.(?:test|exec)\(String\((?:error|err|cause|reason)\)\)/,
  /\b(?:error|err|cause|failure)\.(?:message|rawMessage|details)\.(?:includes|startsWith|endsWith|match)\(/,
];

/** The files that access private members of a library. */
export function prying(files: readonly SourceFile[]): readonly string[] {
  return filesWith(PRIVATE_MEMBERS, files);
}

/** The files that recognise an error by its text. */
export function textReaders(files: readonly SourceFile[]): readonly string[] {
  return filesWith(TEXTS_OF_ERRORS, files);
}

function filesWith(patterns: readonly RegExp[], files: readonly SourceFile[]): readonly string[] {
  return files
    .filter((file) => !isTest(file) && !file.path.includes("/gen/"))
    .filter(({ text }) => patterns.some((pattern) => pattern.test(withoutComments(text))))
    .map(({ path }) => path);
}
