import type { Package, SourceFile } from "./workspace.ts";

/** What each package may carry in a release: imports point one way. ARCHITECTURE.md shows the same table. */
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
  wire: ["api", "domain"],
  operations: ["api", "domain", "errors", "identity", "process", "rpc", "store", "wire"],
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
  bench: [
    ...["api", "config", "domain", "errors", "events", "identity", "postgres-embedded", "process"],
    // The simulation of work runs what these four decide.
    ...["rpc", "store", "testkit", "wire", "agent", "health", "keeper", "scheduler"],
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

/** Dependencies that point the wrong way, for a release or, with the testkit as the one addition, for tests. */
export function wrongDependencies(one: Package): readonly string[] {
  const allowed = MAY_DEPEND_ON[one.name];
  if (allowed === undefined) return [`${one.folder}: has no row in the table of imports`];
  const inRelease = one.dependencies.filter((name) => !allowed.includes(name));
  const inTests = one.devDependencies.filter((name) => name !== "testkit");
  return [
    ...inRelease.map((name) => `${one.folder}: must not depend on ${name}`),
    ...inTests.map((name) => `${one.folder}: tests may add the testkit alone, not ${name}`),
  ];
}

/** References of a project that differ from its workspace dependencies. */
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

/** Imports that no dependency allows, or that reach into another package's folder. */
export function wrongImports(one: Package): readonly string[] {
  return one.files.flatMap((file) => {
    const allowed = isTest(file) ? [...one.dependencies, ...one.devDependencies] : one.dependencies;
    // Tests may climb to their package's folder, where helpers of theirs are; what is released stays in src.
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
 * Names taken from a package that is loaded late. In the bundle such a package, when it is in CommonJS, has a default
 * and nothing else.
 */
export function lateNames(one: Package): readonly string[] {
  return one.files
    .filter((file) => !isTest(file))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\{([^{}]*)\} = await import\("(?![.@]|node:)([^"]+)"\)/g)]
        .filter(([, names = ""]) => !/^\s*default: \w+,?\s*$/.test(names))
        .map(([, , specifier]) => `${path}: takes names from ${specifier}, which is loaded late: take its default`),
    );
}

/** Clocks and chance in the domain, which takes both as values. */
export function impurities(one: Package): readonly string[] {
  return one.files
    .filter((file) => !isTest(file))
    .flatMap((file) =>
      [...withoutComments(file.text).matchAll(/\bMath\.random\b|\bDate\b|\bperformance\b/g)].map(
        ([word]) => `${file.path}: uses ${word}`,
      ),
    );
}

/** Names that are not kebab-case, and files too long to be one thing. */
export function untidyFiles(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap((file) => {
    const path = file.path.split("/").slice(file.path.startsWith("bench") ? 1 : 2);
    const lines = file.text.split("\n").length - 1;
    return [
      ...path.filter((part) => !KEBAB_CASE.test(part)).map((part) => `${file.path}: ${part} is not kebab-case`),
      // A package's list of exports is no thought that could be split.
      ...(lines > MAX_LINES && !file.path.endsWith("/src/index.ts")
        ? [`${file.path}: has ${lines} lines; ${MAX_LINES} at most`]
        : []),
    ];
  });
}

/**
 * Lines of sources that are too wide. The formatter leaves texts and comments alone; names of tests and regular
 * expressions cannot be wrapped, migrations never change, and recordings are as they were printed.
 */
export function wideLines(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter(({ path }) => !/\/(gen|migrations|recordings)\//.test(path))
    .flatMap(({ path, text }) => tooWide(path, text, /^\s*((it|describe)\(|\](\s*as const)?\)\()"|^\s*\/[^/*]/));
}

/** Lines of a page that are too wide, tables, code and what has no space to wrap at aside. */
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

/** Folders with more files than are easily read through, tests aside. */
export function crowdedFolders(files: readonly SourceFile[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { path } of files) {
    const folder = path.slice(0, path.lastIndexOf("/"));
    // Migrations are as many as they are, and in order.
    if (path.endsWith(".test.ts") || folder.endsWith("/migrations")) continue;
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > MAX_FILES)
    .map(([folder, count]) => `${folder}: has ${count} files beside tests; ${MAX_FILES} at most`);
}

/** The files and folders of the tree that a document names. */
export function pathsIn(page: string): readonly string[] {
  const folders = "baseline|bench|bin|deploy|docs|libs|mutants|proto|scripts|services|tests|third_party";
  const path = new RegExp(`(?<![\\w/.-])(?:${folders})/[\\w./-]*(?<![.-])(?![\\w*<{/-])`, "g");
  return [...page.matchAll(path)].map(([named]) => named);
}

/** Values of the ErrorReason enum whose comment does not begin with their gRPC code, as "[NOT_FOUND] ...". */
export function reasonsWithoutCode(proto: string): readonly string[] {
  const body = /enum ErrorReason \{([\s\S]*?)\n\}/.exec(proto)?.[1] ?? "";
  return [...body.matchAll(/((?:^\s*\/\/.*\n)*)^\s*(ERROR_REASON_\w+) = (\d+)/gm)]
    .filter(([, , , number]) => number !== "0")
    .filter(([, comment = ""]) => !GRPC_CODES.has(/^\s*\/\/ \[(\w+)\]/.exec(comment)?.[1] ?? ""))
    .map(([, , name]) => `${name}: its comment does not begin with a code`);
}

function importsOf(file: SourceFile): readonly string[] {
  return [...withoutComments(file.text).matchAll(IMPORT)].map(([, specifier = ""]) => specifier);
}

/** A test, or one of the helpers that tests keep in a folder `testing`, or in `test` beside src. */
function isTest(file: SourceFile): boolean {
  const folders = file.path.split("/").slice(0, -1);
  return file.path.endsWith(".test.ts") || folders.includes("test") || folders.includes("testing");
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$/gm, "$1");
}
