/** The user that a command runs as. */
export interface Account {
  /** The account's name; null for a user id without an account, whose only group has the same id. */
  readonly name: string | null;
  readonly uid: number;
  readonly gid: number;
}

/** A command, ready to run. */
export interface Command {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
}

/**
 * Supervises one execution: it starts the program in a separate session, holds both output pipes open, and records how
 * the program ended. It outlives the keeper, so that the next keeper finds the exit if a keeper was killed. It is a
 * shell because there is one for each execution, and a shell takes 1 MB where Node.js takes 45.
 *
 * Its arguments: the directory of the execution, the group that can write to its pipes or nothing, `plain` or
 * `namespaces`, then the directories of the cgroups that the program enters, then `--`, then the words before `sh` that
 * change the user of the program. With `namespaces`, these words end in this script again, with `--inside`, as the
 * first process of the new namespaces. The arguments of `--inside` are pairs of directories (the first is mounted over
 * the second), then `--`, then the words before `sh`.
 *
 * - `run/started` is created first and only once, so that two keepers never start one execution twice.
 * - Traps that do something are reset in child processes. Traps that ignore a signal would be inherited.
 * - `3` and `4` are opened for reading and writing, so that the pipes have both ends while no keeper reads. The program
 *   gets descriptors that can only write: a process that takes them over cannot read the output.
 * - `6` receives whether the program is about to begin, or why not. The program never gets it. `7` to `9` are closed. A
 *   shell cannot name higher ones, which the keeper has closed before.
 * - The program runs in the foreground: in the background it would start with SIGINT and SIGQUIT ignored.
 * - In namespaces, the program is not the first process, because that ignores signals that it does not handle. The
 *   first process waits for the program, and everything that still runs ends with it.
 * - Processes record their ids before /proc is replaced, so that these are the ids that the keeper sees.
 * - Each file is written with one write, and a reader waits for the end of the line.
 * - Shells use the same number for a signal and for an exit code above 128, but print a few words about a signal.
 * - At the end, the shim waits up to a day until a keeper acknowledges the exit: without the shim, unread output in the
 *   pipes would be lost.
 */
export const SHIM_SCRIPT = `
set -u
note() { read -r line </proc/self/stat && echo "$line" >"run/$1"; }
fail() { echo "$1" >run/status; exit 125; }
if [ "$1" = --inside ]; then
  shift
  exec 2>/dev/null
  note init
  exec 2>>run/words
  (
    exec 2>/dev/null
    note child
    mount -n -t proc -o nosuid,nodev,noexec proc /proc || fail "cannot mount /proc"
    while [ "$1" != -- ]; do
      case $1 in
        tmpfs) mount -n -t tmpfs -o nosuid,nodev,mode=1777 tmpfs "$2" ;;
        *) mkdir -p "$2" && mount -n -o rbind "$1" "$2" ;;
      esac || fail "cannot mount $2"
      shift 2
    done
    shift
    exec "$@" sh -s <program >&3 2>&4 3>&- 4>&- 6>run/status
  )
  exit $?
fi
cd "$1" || exit 1
mkdir run/started 2>/dev/null || exit 1
group=$2
kind=$3
shift 3
trap : HUP INT TERM QUIT USR1 USR2 ALRM PIPE
mkfifo -m 600 stdout.pipe stderr.pipe seen.pipe || exit 1
if [ -n "$group" ]; then
  chgrp "$group" stdout.pipe stderr.pipe && chmod 620 stdout.pipe stderr.pipe || exit 1
fi
exec 3<>stdout.pipe 4<>stderr.pipe 5<>seen.pipe 6>&- 7>&- 8>&- 9>&-
note shim
exec 2>run/words
(
  exec 2>/dev/null 3>stdout.pipe 4>stderr.pipe 5>&-
  [ "$kind" = namespaces ] || note child
  while [ "$1" != -- ]; do
    echo 0 >"$1/cgroup.procs" || fail "cannot enter the cgroup $1"
    shift
  done
  shift
  echo 0 >/proc/self/oom_score_adj
  [ "$kind" = namespaces ] && exec "$@" 2>run/status
  exec "$@" sh -s <program >&3 2>&4 3>&- 4>&- 6>run/status
)
code=$?
exec 2>/dev/null
words=
read -r words <run/words
echo "$code $words" >run/exit
timeout 86400 sh -c 'read -r seen' <&5
`;

/** The script that a shell reads as the execution's user. It sets the environment and becomes the command. */
export function programScript({ argv, env, directory }: Command): string {
  const [program = ""] = argv;
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [
    'fail() { echo "$1" >&6; exit 127; }',
    `cd ${quote(directory)} 2>/dev/null || fail ${quote(`cannot enter the directory ${directory}`)}`,
    // Unset OLDPWD, which cd sets and programs do not expect.
    "unset OLDPWD",
    ...exports,
    `command -v ${quote(program)} >/dev/null 2>&1 || fail ${quote(`cannot find the program ${program}`)}`,
    "echo begun >&6",
    "exec 6>&-",
    `exec ${argv.map(quote).join(" ")} </dev/null`,
    "",
  ].join("\n");
}

/**
 * The words that run a command as another user, with no way back: no capability is left, and setuid programs have no
 * effect.
 *
 * @param privileges setpriv options that drop privileges on this machine; empty without setpriv.
 */
export function becoming(account: Account | null, privileges: readonly string[]): readonly string[] {
  if (account === null) return privileges.length === 0 ? [] : ["setpriv", ...privileges];
  const { name, uid, gid } = account;
  const groups = name === null ? "--clear-groups" : "--init-groups";
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, groups, ...privileges];
}

/** Quote a word so that a shell takes it literally. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
