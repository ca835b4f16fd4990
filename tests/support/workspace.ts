import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the whole workspace. */
export const workspaceRoot = fileURLToPath(new URL("../..", import.meta.url));

/** One source file, with its path relative to the workspace. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** One package of the workspace, as its folder describes it. */
export interface Package {
  /** The name without its scope. It equals the name of the folder. */
  readonly name: string;
  readonly folder: string;
  /** Workspace packages that a release of this package contains. */
  readonly dependencies: readonly string[];
  /** Workspace packages that only its tests use. */
  readonly devDependencies: readonly string[];
  /** The names of the packages whose projects the package's tsconfig refers to. */
  readonly references: readonly string[];
  /** The handwritten sources, without generated ones. */
  readonly files: readonly SourceFile[];
}

const SCOPE = "@rollcall/";
/** The names of folders with generated files. */
const NOT_WRITTEN = new Set(["node_modules", "gen", "dist", "bundle"]);

/** Reads every package under libs/ and services/, simulation and bench. */
export function readPackages(): readonly Package[] {
  const folders = ["libs", "services"].flatMap((parent) =>
    readdirSync(join(workspaceRoot, parent)).map((name) => `${parent}/${name}`),
  );
  return [...folders, "simulation", "bench"]
    .filter((folder) => existsSync(join(workspaceRoot, folder, "package.json")))
    .map(readPackage);
}

/** Reads the TypeScript sources in a folder of the workspace, including tests but not generated ones. */
export function readSources(folder: string): readonly SourceFile[] {
  return existsSync(join(workspaceRoot, folder))
    ? sourcePaths(folder)
        .sort()
        .map((path) => ({ path, text: readFileSync(join(workspaceRoot, path), "utf8") }))
    : [];
}

/**
 * Lists the sources in a folder. Skips node_modules, because its links to packages of the workspace form cycles,
 * which a recursive readdir would follow.
 */
function sourcePaths(folder: string): string[] {
  return readdirSync(join(workspaceRoot, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return NOT_WRITTEN.has(entry.name) ? [] : sourcePaths(path);
    return entry.isFile() && /\.[mc]?[jt]sx?$/.test(entry.name) ? [path] : [];
  });
}

/** Reads a file of the workspace that contains plain JSON. */
function readJson(path: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(join(workspaceRoot, path), "utf8")) as Record<string, unknown>;
}

/** Return the folders that a tsconfig refers to, relative to the workspace. */
export function referencesOf(tsconfig: string): readonly string[] {
  const references = (readJson(tsconfig).references ?? []) as readonly { path: string }[];
  return references.map(({ path }) => join(dirname(tsconfig), path));
}

function readPackage(folder: string): Package {
  const manifest = readJson(`${folder}/package.json`);
  return {
    name: basename(folder),
    folder,
    dependencies: workspaceNames(manifest.dependencies),
    devDependencies: workspaceNames(manifest.devDependencies),
    references: referencesOf(`${folder}/tsconfig.json`).map((path) => basename(path)),
    files: [...readSources(`${folder}/src`), ...readSources(`${folder}/test`)],
  };
}

function workspaceNames(dependencies: unknown): readonly string[] {
  return Object.keys((dependencies ?? {}) as object)
    .filter((name) => name.startsWith(SCOPE))
    .map((name) => name.slice(SCOPE.length))
    .sort();
}
