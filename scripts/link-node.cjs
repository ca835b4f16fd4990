// Links node_modules/.bin/node to the Node.js of the dependencies, after each install. If no package of Node.js runs on
// this platform, it links to the Node.js that runs this script. That Node.js must then be a version that Rollcall
// supports.
const { spawnSync } = require("node:child_process");
const { readFileSync, realpathSync, renameSync, symlinkSync } = require("node:fs");
const { join, relative } = require("node:path");

const ROOT = join(__dirname, "..");
const BIN = join(ROOT, "node_modules/.bin");

const { engines, optionalDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const bundled = Object.keys(optionalDependencies)
  .filter((name) => name.startsWith("node-"))
  .map((name) => join(ROOT, "node_modules", name, "bin/node"))
  .find((file) => spawnSync(file, ["--version"]).status === 0);

if (bundled === undefined && isOlder(process.versions.node, engines.node)) {
  process.stderr.write(
    `The bundled Node.js does not run on ${process.platform}-${process.arch} (on Linux it needs libatomic: apt-get ` +
      `install libatomic1), and the installed ${process.versions.node} is not ${engines.node}; install one of the two.\n`,
  );
  process.exitCode = 1;
} else {
  const link = join(BIN, "node");
  const draft = `${link}.${process.pid}`;
  symlinkSync(bundled === undefined ? realpathSync(process.execPath) : relative(BIN, bundled), draft);
  // Replace the shell script that pnpm installs here. It would run Node.js as its child and swallow signals.
  renameSync(draft, link);
}

/** Whether a version is below the minimum of a range in the form ">=MAJOR.MINOR". */
function isOlder(version, range) {
  const [major, minor] = version.split(".").map(Number);
  const [leastMajor, leastMinor = 0] = range.replace(">=", "").split(".").map(Number);
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}
