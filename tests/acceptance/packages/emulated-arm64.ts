import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type RunningProgram, startProgram } from "./program.ts";

const run = promisify(execFile);
const EMULATOR = "/usr/bin/qemu-aarch64-static";
const FETCH_LIMIT_MS = 300_000;
const COMMAND_LIMIT_MS = 120_000;
/** The libraries that the packages need: those of C and C++. */
const LIBRARIES = ["libc6", "libgcc-s1", "libstdc++6"];

/**
 * The beginning of an ELF file for machine 183, and the mask of its significant bits. Both are in the notation of
 * the kernel's registry for formats.
 */
const HEADER = `\\x7fELF\\x02\\x01\\x01${"\\x00".repeat(9)}\\x02\\x00\\xb7\\x00`;
const MASK = `${"\\xff".repeat(7)}\\x00${"\\xff".repeat(8)}\\xfe${"\\xff".repeat(3)}`;

/**
 * A script that makes the kernel run arm64 programs with the emulator. This affects only this program and its
 * children, because the registry belongs to a separate user namespace.
 */
const ENTER = `place=$1
shift
mount -t binfmt_misc binfmt_misc "$place"
printf '%s' ':arm64:M::${HEADER}:${MASK}:${EMULATOR}:FPC' > "$place/register"
exec "$@"`;
const UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", ENTER, "sh"];

/** Whether this x64 machine can run arm64 programs. */
export const canEmulate =
  process.arch === "x64" &&
  process.getuid?.() === 0 &&
  spawnSync(EMULATOR, ["--version"]).status === 0 &&
  spawnSync(UNSHARE[0] ?? "", [...UNSHARE.slice(1), "/mnt", "true"]).status === 0;

/** Runs programs of linux-arm64. */
export interface Arm64 {
  /** Run a program until it exits. Returns its output. Rejects if it fails. */
  run(words: readonly string[], env: Readonly<Record<string, string>>): Promise<string>;
  start(words: readonly string[], env: Readonly<Record<string, string>>): RunningProgram;
}

/**
 * Prepare the emulation in a folder, with Debian's libraries for arm64 from the archive that this machine's packages
 * come from.
 */
export async function emulateArm64(folder: string): Promise<Arm64> {
  const at = (name: string) => join(folder, name);
  const [libraries, place, debs] = [at("libraries"), at("binfmt"), at("debs")];
  for (const path of [libraries, place, debs, at("state/lists/partial"), at("cache/archives/partial")]) {
    mkdirSync(path, { recursive: true });
  }
  const settings = {
    "APT::Architecture": "arm64",
    "APT::Architectures": "arm64",
    "APT::Sandbox::User": "root",
    "Dir::State": at("state"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": at("cache"),
  };
  const options = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  const apt = (...words: readonly string[]) =>
    run("apt-get", [...options, "-qq", ...words], { cwd: debs, timeout: FETCH_LIMIT_MS });
  await apt("update");
  await apt("download", ...LIBRARIES);
  for (const name of readdirSync(debs)) await run("dpkg-deb", ["-x", join(debs, name), libraries]);
  const entering = [...UNSHARE, place];
  const all = (env: Readonly<Record<string, string>>) => ({ ...env, QEMU_LD_PREFIX: libraries });
  return {
    run: async (words, env) => {
      const [program = "", ...rest] = [...entering, ...words];
      return (await run(program, rest, { env: all(env), timeout: COMMAND_LIMIT_MS })).stdout;
    },
    start: (words, env) => {
      const [program = "", ...rest] = [...entering, ...words];
      return startProgram(program, rest, all(env));
    },
  };
}
