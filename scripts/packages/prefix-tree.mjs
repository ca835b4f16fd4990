// Lays out the files of a package below its prefix: bin, lib and share. The layout is the same in a tarball and a
// .deb.
import { cp, lstat, mkdir, readFile, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fetchPackage } from "./fetch-package.mjs";
import { fetchLibatomic } from "./libatomic.mjs";
import { postgresLibraries } from "./postgres-libraries.mjs";
import { KINDS } from "./program.mjs";
import { run } from "./run.mjs";
import { nodePackage, postgresPackage, WORKSPACE } from "./workspace.mjs";

/** Matches files of Postgres that are needed only to build programs against it. */
const NOT_TO_RUN = /\/native\/(include|lib\/pkgconfig|lib\/postgresql\/pgxs)(\/|$)|\.a$|\.d\.ts$|\/scripts(\/|$)/;

const POSTGRES_LICENCES = ["LICENSE.postgresql", "LICENSE.postgresql-libraries"];

/**
 * Lay out a kind of package for a platform in a folder. `program` is the result of buildProgram(); `words` are the
 * man page and the completions. Returns the packages that were added to those of the program.
 */
export async function layOutPrefix(folder, { kind, platform, program, words, version, info, cache }) {
  await rm(folder, { recursive: true, force: true });
  const lib = join(folder, "lib/rollcall");
  await mkdir(join(folder, "bin"), { recursive: true });
  await cp(join(WORKSPACE, "bin/rollcall"), join(folder, "bin/rollcall"));
  await cp(program.folder, lib, { recursive: true });
  await writeFile(join(lib, "package.json"), `${JSON.stringify({ type: "module", version, ...info })}\n`);
  const node = nodePackage(platform);
  const nodeFolder = await fetchPackage(node, cache);
  await cp(join(nodeFolder, "bin/node"), join(lib, "bin/node"));
  const libatomic = await fetchLibatomic(platform, cache);
  await cp(libatomic.library, join(lib, "lib/libatomic.so.1"));
  const doc = join(folder, "share/doc/rollcall");
  await mkdir(doc, { recursive: true });
  await cp(join(nodeFolder, "LICENSE"), join(doc, "LICENSE.node"));
  await cp(libatomic.licence, join(doc, "LICENSE.libatomic"));
  for (const file of ["LICENSE", "NOTICES.txt"]) await rename(join(lib, file), join(doc, file));
  await cp(join(WORKSPACE, "CHANGELOG.md"), join(doc, "CHANGELOG.md"));
  await writeWords(join(folder, "share"), words);
  const added = [{ ...node, license: "MIT", type: "platform" }, libatomic.component];
  if (!KINDS[kind].hasPostgres) return added;
  const postgres = postgresPackage(platform);
  const postgresFolder = join(lib, "node_modules", postgres.name);
  await layOutPostgres(postgresFolder, await fetchPackage(postgres, cache));
  for (const file of POSTGRES_LICENCES) await cp(join(WORKSPACE, "deploy/package", file), join(doc, file));
  const libraries = await postgresLibraries(postgresFolder);
  return [...added, { ...postgres, license: "PostgreSQL", type: "platform" }, ...libraries];
}

async function writeWords(share, { manual, completions }) {
  const files = {
    "man/man1/rollcall.1.gz": await run("gzip", ["-9n"], { input: manual }),
    "bash-completion/completions/rollcall": completions.bash,
    "zsh/site-functions/_rollcall": completions.zsh,
    "fish/vendor_completions.d/rollcall.fish": completions.fish,
  };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(share, path)), { recursive: true });
    await writeFile(join(share, path), content);
  }
}

/**
 * Lay out the Postgres package as npm installs it. This function creates the links to libraries that the package's
 * install script would create.
 */
async function layOutPostgres(folder, fetched) {
  await cp(fetched, folder, { recursive: true, filter: (path) => !NOT_TO_RUN.test(path.slice(fetched.length)) });
  const list = join(folder, "native/pg-symlinks.json");
  const links = JSON.parse(await readFile(list, "utf8").catch(() => "[]"));
  await rm(list, { force: true });
  for (const { source, target } of links) {
    if (dirname(source) !== dirname(target)) throw new Error(`${target} should be a link within its folder`);
    if ((await lstat(join(folder, source)).catch(() => null)) === null) continue;
    await unlink(join(folder, target)).catch(() => {});
    await symlink(basename(source), join(folder, target));
  }
}
