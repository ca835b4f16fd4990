import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the whole workspace. */
export const workspaceRoot = fileURLToPath(new URL("../..", import.meta.url));

/** One source file, its path relative to the workspace. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** One package of the workspace, as its folder says it is. */
export interface Package {
  /** The name without its scope, equal to the folder's. */
  readonly name: string;
  readonly folder: string;
  /** Workspace packages that a release of this package carries. */
  readonly dependencies: readonly string[];
  /** Workspace packages that only its tests use. */
  readonly devDependencies: readonly string[];
  /** Names of the packages whose projects its tsconfig refers to. */
  readonly references: readonly string[];
  /** Sources written by hand: generated ones are left out. */
  readonly files: readonly SourceFile[];
}

const SCOPE = "@rollcall/";
/** Folders of generated files. */
const NOT_WRITTEN = new Set(["node_modules", "gen", "dist", "bundle"]);

/** Reads every package under libs/ and services/, and bench. */
export function readPackages(): readonly Package[] {
  const folders = ["libs", "services"].flatMap((parent) =>
    readdirSync(join(workspaceRoot, parent)).map((name) => `${parent}/${name}`),
  );
  return [...folders, "bench"]
    .filter((folder) => existsSync(join(workspaceRoot, folder, "package.json")))
    .map(readPackage);
}

/** Reads the TypeScript sources under a folder of the workspace, tests included, generated ones left out. */
export function readSources(folder: string): readonly SourceFile[] {
  return existsSync(join(workspaceRoot, folder))
    ? sourcePaths(folder)
        .sort()
        .map((path) => ({ path, text: readFileSync(join(workspaceRoot, path), "utf8") }))
    : [];
}

/** Skips node_modules: its links to packages of the workspace form cycles, which a recursive readdir follows. */
function sourcePaths(folder: string): string[] {
  return readdirSync(join(workspaceRoot, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return NOT_WRITTEN.has(entry.name) ? [] : sourcePaths(path);
    return entry.isFile() && /\.[mc]?[jt]sx?$/.test(entry.name) ? [path] : [];
  });
}

/** Reads a file of the workspace that holds plain JSON. */
function readJson(path: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(join(workspaceRoot, path), "utf8")) as Record<string, unknown>;
}

/** The folders that a tsconfig refers to, relative to the workspace. */
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
