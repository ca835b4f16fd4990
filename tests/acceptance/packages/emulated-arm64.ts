import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type RunningProgram, startProgram } from "./program.ts";

const run = promisify(execFile);
const EMULATOR = "/usr/bin/qemu-aarch64-static";
const FETCH_LIMIT_MS = 300_000;
const COMMAND_LIMIT_MS = 120_000;
/** What our packages ask of a machine: a C library, and that of C++. */
const LIBRARIES = ["libc6", "libgcc-s1", "libstdc++6"];

/** The beginning of an ELF file for the machine 183, and which bits of it count, as the kernel's registry has them. */
const HEADER = `\\x7fELF\\x02\\x01\\x01${"\\x00".repeat(9)}\\x02\\x00\\xb7\\x00`;
const MASK = `${"\\xff".repeat(7)}\\x00${"\\xff".repeat(8)}\\xfe${"\\xff".repeat(3)}`;

/**
 * Have the kernel run programs of arm64 by the emulator, for this program and its children alone: the registry of a
 * user namespace of one's own is no other's.
 */
const ENTER = `place=$1
shift
mount -t binfmt_misc binfmt_misc "$place"
printf '%s' ':arm64:M::${HEADER}:${MASK}:${EMULATOR}:FPC' > "$place/register"
exec "$@"`;
const UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", ENTER, "sh"];

/** Whether programs of arm64 can be run here, on x64. */
export const canEmulate =
  process.arch === "x64" &&
  process.getuid?.() === 0 &&
  spawnSync(EMULATOR, ["--version"]).status === 0 &&
  spawnSync(UNSHARE[0] ?? "", [...UNSHARE.slice(1), "/mnt", "true"]).status === 0;

/** A way to run programs of linux-arm64. */
export interface Arm64 {
  /** Run a program to its end. Answers what it printed; rejects when it fails. */
  run(words: readonly string[], env: Readonly<Record<string, string>>): Promise<string>;
  /** Start a program. */
  start(words: readonly string[], env: Readonly<Record<string, string>>): RunningProgram;
}

/** Prepare it in a folder, with Debian's libraries for arm64 from the archive of this machine's own packages. */
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
