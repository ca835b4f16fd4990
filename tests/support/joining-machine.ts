import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { workspaceRoot } from "./workspace.ts";

/** How a script ended. */
export interface ScriptEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A machine that join.sh sees: a root directory, and programs that stand for those of the system. */
export interface JoiningMachine {
  readonly root: string;
  /** The environment of the machine's shells. */
  readonly env: Readonly<Record<string, string>>;
  /** Run a line as root in a shell of the machine. `env` also controls the programs: see PROGRAMS. */
  run(line: string, env?: Readonly<Record<string, string>>): Promise<ScriptEnd>;
  /** The arguments and the environment of every program that the script has started. */
  started(): string;
  /** What the agent has logged. */
  agentLog(): string;
  /** Every file of the machine, with its content. */
  files(): readonly string[];
  read(path: string): string;
  /** Stop the agent, and remove the machine. */
  dispose(): void;
}

/** The system's own programs that the script uses, and those that the programs below use. */
const REAL = [
  ...["cat", "chmod", "cp", "curl", "date", "dash", "dirname", "env", "find", "grep", "gzip"],
  ...["head", "mkdir", "mktemp", "mv", "readlink", "rm", "rmdir", "sed", "setsid", "sh", "sha256sum", "sleep"],
  ...["tail", "tar"],
];

/** Each program records its arguments and its environment. */
const RECORD = '{ echo "$0 $*"; env; } >> "$MACHINE/started"\n';

/** The programs that the machine has instead of the system's, and the variables that make them fail. */
const PROGRAMS: Readonly<Record<string, string>> = {
  id: 'case "$*" in -u) echo "$' + '{FAKE_UID:-0}" ;; *) exit 1 ;; esac',
  uname:
    'case $1 in -s) echo Linux ;; -m) echo "$' +
    '{FAKE_MACHINE:-x86_64}" ;; -n) echo "$' +
    '{FAKE_HOST:-some-host}" ;; esac',
  chown: "exit 0",
  useradd: "exit 0",
  userdel: "exit 0",
  curl: 'if [ -n "$FAKE_CURL_EXIT" ]; then exit "$FAKE_CURL_EXIT"; fi\nexec "$MACHINE/real/curl" "$@"',
  // The unit's own settings are tested on fresh machines. Here the agent runs with the files of this root.
  systemctl: `case "$1 $2" in
  "restart rollcall-agent.service")
    [ -z "$FAKE_START_FAILS" ] || { echo "Job for rollcall-agent.service failed."; exit 1; }
    program=$ROLLCALL_JOIN_ROOT/usr/bin/rollcall
    [ -x "$program" ] || program=$ROLLCALL_JOIN_ROOT/usr/local/bin/rollcall
    sed "s|: /etc/|: $ROLLCALL_JOIN_ROOT/etc/|; s|: /var/|: $ROLLCALL_JOIN_ROOT/var/|" \
      "$ROLLCALL_JOIN_ROOT/etc/rollcall/agent.yaml" > "$MACHINE/agent.yaml"
    # The agent starts with systemd's environment, not with the script's.
    env -i PATH="$PATH" setsid "$program" agent --config "$MACHINE/agent.yaml" \\
      >> "$MACHINE/journal" 2>&1 < /dev/null &
    echo $! >> "$MACHINE/pids"
    ;;
  "disable --now") while read -r pid; do kill "$pid" 2> /dev/null; done < "$MACHINE/pids" || true ;;
esac
exit 0`,
  journalctl: 'cat "$MACHINE/journal"',
};

/** Debian's programs. The machine's "package" is a tarball of what a .deb unpacks. */
const DEBIAN: Readonly<Record<string, string>> = {
  "apt-get": `for file in "$@"; do :; done
tar -xzf "$file" -C "$ROLLCALL_JOIN_ROOT" || exit 100
[ -z "$FAKE_APT_FAILS" ] || { echo "E: write error: No space left on device"; echo; exit 100; }`,
  dpkg: `cd "$ROLLCALL_JOIN_ROOT"
case $1 in --purge) rm -rf etc/rollcall var/lib/rollcall-agent ;; esac
rm -rf usr/bin usr/lib`,
};

/** Create a machine. With `isDebian` it has dpkg. */
export function createJoiningMachine({ isDebian = false } = {}): JoiningMachine {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-joining-"));
  const [root, bin, real] = ["root", "bin", "real"].map((name) => join(folder, name)) as [string, string, string];
  const standard = ["run/systemd/system", "etc/systemd/system", "var/lib", "usr/local/lib", "usr/local/share/doc"];
  for (const path of [...standard.map((it) => join(root, it)), join(root, "usr/local/bin"), bin, real]) {
    mkdirSync(path, { recursive: true });
  }
  for (const name of ["started", "journal", "pids"]) writeFileSync(join(folder, name), "");
  for (const name of REAL) {
    const found = execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    symlinkSync(found, join(name in PROGRAMS ? real : bin, name));
  }
  for (const [name, body] of Object.entries({ ...PROGRAMS, ...(isDebian ? DEBIAN : {}) })) {
    const fails = ["FAKE_CURL_EXIT", "FAKE_START_FAILS", "FAKE_APT_FAILS"].map((it) => `: "\${${it}:=}"\n`).join("");
    writeFileSync(join(bin, name), `#!/bin/sh\n${RECORD}${fails}${body}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const own = { PATH: bin, MACHINE: folder, ROLLCALL_JOIN_ROOT: root, TMPDIR: folder, HOME: folder };
  const read = (path: string) => readFileSync(join(folder, path), "utf8");
  return {
    root,
    env: own,
    run: (line, env = {}) =>
      new Promise((resolve) => {
        execFile("dash", ["-c", line], { env: { ...own, ...env } }, (error, out, err) => {
          resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
        });
      }),
    started: () => read("started"),
    agentLog: () => read("journal"),
    files: () =>
      readdirSync(root, { recursive: true, encoding: "utf8" })
        .sort()
        .map((path) => (statSync(join(root, path)).isFile() ? `${path}\n${readFileSync(join(root, path))}` : path)),
    read: (path) => readFileSync(join(root, path), "utf8"),
    dispose: () => {
      for (const pid of read("pids").trim().split("\n").filter(Boolean).map(Number)) endGroup(pid);
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

function endGroup(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Ignore the error, because the agent has already ended.
  }
}

/**
 * Make packages of the agent like those of `make dist`, whose program is the given one, with their SHA256SUMS. Returns
 * their names.
 */
export function makeAgentPackages(folder: string, program: string): { readonly deb: string; readonly tarball: string } {
  const [deb, tarball] = ["rollcall-agent_0.1.0_amd64.deb", "rollcall-agent-0.1.0-linux-x64.tar.gz"];
  const name = tarball.replace(".tar.gz", "");
  const stage = join(folder, "stage");
  const prefix = join(stage, name);
  write(join(prefix, "bin/rollcall"), `#!/bin/sh\nexec '${program}' "$@"\n`);
  chmodSync(join(prefix, "bin/rollcall"), 0o755);
  for (const path of ["lib/rollcall/package.json", "share/doc/rollcall/LICENSE"]) write(join(prefix, path), "{}\n");
  const units = ["systemd/rollcall-agent.service", "systemd/rollcall-keeper.service"];
  for (const path of ["package/install.sh", ...units, "config/agent.yaml"]) {
    const to = join(prefix, path.replace("package/", ""));
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(workspaceRoot, "deploy", path), to);
  }
  execFileSync("tar", ["-czf", join(folder, tarball), "-C", stage, name]);
  const installed = join(stage, "installed");
  cpSync(join(prefix, "bin"), join(installed, "usr/bin"), { recursive: true });
  cpSync(join(prefix, "config"), join(installed, "etc/rollcall"), { recursive: true });
  cpSync(join(prefix, "systemd"), join(installed, "usr/lib/systemd/system"), { recursive: true });
  execFileSync("tar", ["-czf", join(folder, deb), "-C", installed, "."]);
  rmSync(stage, { recursive: true });
  const sums = [deb, tarball].map((it) => `${digestOf(join(folder, it))}  ${it}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
  return { deb, tarball };
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function digestOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** Whether a program is installed here. */
export function isInstalledHere(program: string): boolean {
  return (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, program)));
}
