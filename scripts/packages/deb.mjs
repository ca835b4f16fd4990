// Makes Debian packages. A package is an ar archive with two tarballs, and is written here so that every Linux
// makes the same bytes.

import { createHash } from "node:crypto";
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { writeAr, writeTarGz } from "./archive.mjs";
import { KINDS } from "./program.mjs";
import { PLATFORMS, WORKSPACE } from "./workspace.mjs";

const SCRIPTS = ["postinst", "prerm", "postrm"];

/**
 * The files that each kind of package installs in addition to its program: units and configuration files, with the
 * fields that depend on the kind. dpkg keeps configuration files that a user has edited.
 */
const PARTS = {
  rollcall: {
    units: [
      ...["rollcall.service", "rollcall@.service", "rollcall-backup.service", "rollcall-backup.timer"],
      ...["rollcall-agent.service", "rollcall-keeper.service"],
    ],
    configuration: ["rollcall.yaml", "services.yaml", "agent.yaml"],
    fields: { Conflicts: "rollcall-agent", Replaces: "rollcall-agent", Provides: "rollcall-agent" },
  },
  "rollcall-agent": {
    units: ["rollcall-agent.service", "rollcall-keeper.service"],
    configuration: ["agent.yaml"],
    fields: { Conflicts: "rollcall", Replaces: "rollcall" },
  },
};

/** Write the .deb file of a kind of package from its files below a prefix. `work` is a scratch folder. */
export async function writeDeb(file, { kind, platform, prefix, version, timeS, work }) {
  await rm(work, { recursive: true, force: true });
  const [data, control] = [join(work, "data"), join(work, "control")];
  await mkdir(control, { recursive: true });
  await cp(prefix, join(data, "usr"), { recursive: true, verbatimSymlinks: true });
  await asDebianHasIt(data, kind);
  const { units, configuration, fields } = PARTS[kind];
  for (const unit of units) await copyInto(data, `usr/lib/systemd/system/${unit}`, `deploy/systemd/${unit}`);
  for (const name of configuration) {
    await copyInto(data, `etc/rollcall/${name}`, `deploy/config/${name}`);
  }
  const files = await filesBelow(data);
  await settleModes(data, files);
  await writeControl(control, { kind, platform, version, fields, configuration, data, files });
  const archive = (name, folder) =>
    writeTarGz(join(work, name), { folder, entries: ["."], timeS, keepModes: true }).then(() =>
      readFile(join(work, name)),
    );
  await writeAr(
    file,
    [
      { name: "debian-binary", content: Buffer.from("2.0\n") },
      { name: "control.tar.gz", content: await archive("control.tar.gz", control) },
      { name: "data.tar.gz", content: await archive("data.tar.gz", data) },
    ],
    timeS,
  );
}

/** Move files to the locations that Debian's policy requires. */
async function asDebianHasIt(data, kind) {
  const share = join(data, "usr/share");
  await mkdir(join(share, "zsh/vendor-completions"), { recursive: true });
  await rename(join(share, "zsh/site-functions/_rollcall"), join(share, "zsh/vendor-completions/_rollcall"));
  await rm(join(share, "zsh/site-functions"), { recursive: true });
  const doc = join(share, "doc", kind);
  if (kind !== "rollcall") await rename(join(share, "doc/rollcall"), doc);
  await cp(join(WORKSPACE, "deploy/debian/copyright"), join(doc, "copyright"));
}

async function copyInto(data, path, from) {
  await mkdir(dirname(join(data, path)), { recursive: true });
  await cp(join(WORKSPACE, from), join(data, path));
}

/** List files and links, sorted, as paths from the root of the installation. */
async function filesBelow(folder) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => !entry.isDirectory())
    .map((entry) => ({ path: join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1), entry }))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

/**
 * Set the modes of files and folders. Configuration can contain passwords and tokens, and the maintainer script
 * makes the service's user its owner.
 */
async function settleModes(data, files) {
  for (const { path, entry } of files) {
    if (entry.isSymbolicLink()) continue;
    const isProgram = ((await stat(join(data, path))).mode & 0o100) !== 0;
    await chmod(join(data, path), path.startsWith("etc/") ? 0o640 : isProgram ? 0o755 : 0o644);
  }
  for (const entry of await readdir(data, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) await chmod(join(entry.parentPath ?? entry.path, entry.name), 0o755);
  }
  await chmod(data, 0o755);
}

async function writeControl(folder, { kind, platform, version, fields, configuration, data, files }) {
  const regular = files.filter(({ entry }) => entry.isFile());
  const sums = [];
  let bytes = 0;
  for (const { path } of regular) {
    const content = await readFile(join(data, path));
    bytes += content.length;
    if (!path.startsWith("etc/")) sums.push(`${createHash("md5").update(content).digest("hex")}  ${path}\n`);
  }
  const control = {
    Package: kind,
    Version: version,
    Architecture: PLATFORMS[platform],
    Maintainer: maintainer(process.env),
    "Installed-Size": String(Math.ceil(bytes / 1024)),
    Depends: "libc6 (>= 2.28), libstdc++6 (>= 8), libgcc-s1, adduser, init-system-helpers (>= 1.54~)",
    ...fields,
    Section: "admin",
    Priority: "optional",
    Description: `${KINDS[kind].summary}\n ${DESCRIPTION}`,
  };
  const text = Object.entries(control).map(([name, value]) => `${name}: ${value}\n`);
  await writeFile(join(folder, "control"), text.join(""));
  await writeFile(join(folder, "md5sums"), sums.join(""));
  await writeFile(join(folder, "conffiles"), configuration.map((name) => `/etc/rollcall/${name}\n`).join(""));
  for (const script of SCRIPTS) {
    const source = await readFile(join(WORKSPACE, "deploy/debian", script), "utf8");
    await writeFile(join(folder, script), source.replaceAll("@PACKAGE@", kind));
  }
  for (const name of await readdir(folder)) await chmod(join(folder, name), SCRIPTS.includes(name) ? 0o755 : 0o644);
  await chmod(folder, 0o755);
}

/**
 * Return the maintainer, from the variables that Debian's tools use. The default is an address that cannot exist.
 */
function maintainer({ DEBFULLNAME = "The Rollcall authors", DEBEMAIL = "maintainers@rollcall.invalid" }) {
  return `${DEBFULLNAME} <${DEBEMAIL}>`;
}

const DESCRIPTION = `Machines join with their own key and describe their real hardware; operators
 approve or reject them; a failure detector decides which of them are healthy; and
 every change is one event in one ordered log. Node.js is bundled.`;
