/** Which user a command becomes. */
export interface Account {
  /** Null for a user id without an account: it is in no group but its own. */
  readonly name: string | null;
  readonly uid: number;
  readonly gid: number;
}

/** A command as it is run. */
export interface Command {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
}

/**
 * Keeps one execution, and nothing else: it starts the program in a session of its own, holds both pipes of its output
 * open, and writes down how it ended. It outlives the keeper, which may be killed and finds the end here. A shell,
 * since there is one for each execution: it takes 1 MB where Node takes 45.
 *
 * Its arguments: the directory of the execution, the group that may write to its pipes or nothing, `plain` or
 * `namespaces`, then the directories of the cgroups that the program enters, then `--`, then the words that come before
 * `sh`: those that make the program another user's. With `namespaces` these words end in this script again, with
 * `--inside`, as the first process of the new namespaces. Its arguments are there pairs of directories, the second of
 * which the first one covers, then `--`, then the words that come before `sh`.
 *
 * - `run/started` is made first and only once, so that two keepers never start one execution twice.
 * - Traps that do something are reset in children; those that ignore a signal would be inherited.
 * - `3` and `4` are opened to read and to write, so that the pipes have both ends while no keeper reads. The program
 *   gets descriptors that only write: who takes them over cannot read what was written.
 * - `6` takes the word that the program is about to begin, or why not. The program never has it. `7` to `9` are closed:
 *   a shell names no higher ones, which the keeper has closed before.
 * - The program runs in the foreground: one in the background would be born with SIGINT and SIGQUIT ignored.
 * - In namespaces it is not the first process: that one ignores signals that it does not handle. The first process
 *   waits for the program, and what still runs ends with it.
 * - Processes write down their ids before /proc is replaced, as the keeper sees them.
 * - What it writes down is one write for each file, and a reader waits for the end of the line.
 * - Shells have one number for a signal and a code above 128, but say a few words about a signal.
 * - At the end it waits for a keeper that has taken note, a day at most: what is left in the pipes would be lost with
 *   it.
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

/** The program that a shell reads as the execution's own user: it sets the environment and becomes the command. */
export function programScript({ argv, env, directory }: Command): string {
  const [program = ""] = argv;
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [
    'fail() { echo "$1" >&6; exit 127; }',
    `cd ${quote(directory)} 2>/dev/null || fail ${quote(`cannot enter the directory ${directory}`)}`,
    // Set by cd, and nothing that a program expects to find.
    "unset OLDPWD",
    ...exports,
    `command -v ${quote(program)} >/dev/null 2>&1 || fail ${quote(`cannot find a program ${program}`)}`,
    "echo begun >&6",
    "exec 6>&-",
    `exec ${argv.map(quote).join(" ")} </dev/null`,
    "",
  ].join("\n");
}

/**
 * The words that make a command another user's, with no way back: no capability is left, and no program with the setuid
 * bit gives one.
 *
 * @param privileges the options of setpriv by which it gives up privileges on this machine; empty without setpriv.
 */
export function becoming(account: Account | null, privileges: readonly string[]): readonly string[] {
  if (account === null) return privileges.length === 0 ? [] : ["setpriv", ...privileges];
  const { name, uid, gid } = account;
  const groups = name === null ? "--clear-groups" : "--init-groups";
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, groups, ...privileges];
}

/** A word that a shell takes as it is. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
